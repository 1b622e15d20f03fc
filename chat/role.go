package chat

import "fmt"

// A Role is what a person is to the bot in one account: looked up from verified
// ids when it matters, never from text or names. The order is that of trust.
type Role uint8

// The roles, weakest first. The zero value is the weakest: unknown means outsider.
const (
	Outsider Role = iota
	Member
	Maintainer
	Admin
)

var roleNames = [...]string{"outsider", "member", "maintainer", "admin"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "outsider"
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name and refuses any other text.
func (r *Role) UnmarshalText(b []byte) error {
	for i, n := range roleNames {
		if string(b) == n {
			*r = Role(i)
			return nil
		}
	}
	return fmt.Errorf("role %q: want outsider, member, maintainer or admin", b)
}
