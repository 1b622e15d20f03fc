package stripe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const (
	maxLineRunes = 500
	maxLines     = 80
)

// text says in Markdown what a snapshot event tells: the state of its object when it happened.
func text(o object, f map[string]string) string {
	about := o.object("data").object("object")
	var l lines
	l.head(o, f)
	for _, n := range named {
		if f[n] != "" && f[n] != f["object"] {
			l.add(n, f[n])
		}
	}
	currency := about.text("currency")
	for _, field := range fields {
		if v := field.show(about[field.key], currency); v != "" {
			l.add(field.key, v)
		}
	}
	for _, at := range [...][2]string{
		{"last_payment_error", "message"},
		{"last_finalization_error", "message"},
		{"outcome", "seller_message"},
		{"cancellation_details", "reason"},
		{"cancellation_details", "feedback"},
		{"cancellation_details", "comment"},
	} {
		if v := about.object(at[0]).text(at[1]); v != "" {
			l.add(at[0]+"."+at[1], v)
		}
	}
	if v := moment(about.object("evidence_details")["due_by"], ""); v != "" {
		l.add("evidence_details.due_by", v)
	}
	metadata := about.object("metadata")
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		l.add("metadata."+k, plain(metadata[k], ""))
	}
	before := o.object("data").object("previous_attributes")
	for _, k := range slices.Sorted(maps.Keys(before)) {
		was, is := plain(before[k], ""), plain(about[k], "")
		if was == "" && is == "" {
			l.add("changed", k)
			continue
		}
		l.add("changed", fmt.Sprintf("%s: %s → %s", k, orNothing(was), orNothing(is)))
	}
	return l.String()
}

// thinText says what a thin event tells, which is that something happened.
func thinText(o object, f map[string]string) string {
	var l lines
	l.head(o, f)
	if r := o.object("reason").text("type"); r != "" {
		l.add("reason", r)
	}
	l.add("state", "not part of the event")
	return l.String()
}

// lines are those of one text.
type lines struct {
	b strings.Builder
	n int
}

func (l *lines) head(o object, f map[string]string) {
	mode := "live mode"
	if strings.HasSuffix(f["account"], testSuffix) {
		mode = "test mode"
	}
	fmt.Fprintf(&l.b, "Stripe event %s (%s)", o.text("type"), mode)
	if f["kind"] != "" {
		l.b.WriteString(": " + oneLine(strings.TrimSpace(f["kind"]+" "+f["object"])))
	}
	if a := strings.TrimSuffix(f["account"], testSuffix); a != self {
		l.add("account", a)
	}
}

func (l *lines) add(key, value string) {
	switch l.n++; {
	case l.n < maxLines:
		l.b.WriteString("\n- " + oneLine(key) + ": " + oneLine(value))
	case l.n == maxLines:
		l.b.WriteString("\n- more is left out")
	}
}

func (l *lines) String() string { return l.b.String() }

// oneLine keeps what somebody wrote from looking like lines of ours.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := 0; len(s) > maxLineRunes {
		for at := range s {
			if i++; i > maxLineRunes {
				return s[:at] + "…"
			}
		}
	}
	return s
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// fields are what is told of an object, if it has them, in this order.
var fields = []struct {
	key  string
	show func(v any, currency string) string
}{
	{"status", plain},
	{"number", plain},
	{"amount", money},
	{"amount_due", money},
	{"amount_paid", money},
	{"amount_remaining", money},
	{"amount_captured", money},
	{"amount_received", money},
	{"amount_refunded", money},
	{"amount_total", money},
	{"total", money},
	{"balance", money},
	{"description", plain},
	{"reason", plain},
	{"billing_reason", plain},
	{"cancellation_reason", plain},
	{"failure_code", plain},
	{"failure_message", plain},
	{"attempt_count", plain},
	{"next_payment_attempt", moment},
	{"due_date", moment},
	{"current_period_end", moment},
	{"trial_end", moment},
	{"cancel_at_period_end", flag},
	{"cancel_at", moment},
	{"canceled_at", moment},
	{"ended_at", moment},
	{"arrival_date", moment},
	{"payment_status", plain},
	{"email", plain},
	{"name", plain},
	{"customer_email", plain},
	{"customer_name", plain},
	{"client_reference_id", plain},
	{"delinquent", flag},
	{"disputed", flag},
	{"refunded", flag},
}

// plain is a text or number as it is, "" for anything else.
func plain(v any, _ string) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// flag is told only where it is set.
func flag(v any, _ string) string {
	if v == true {
		return "yes"
	}
	return ""
}

// moment is a Unix time in words.
func moment(v any, _ string) string {
	n, _ := v.(json.Number)
	s, ok := channels.Seconds(n.String())
	if !ok {
		return ""
	}
	return time.Unix(s, 0).UTC().Format(time.RFC3339)
}

// Currencies whose smallest unit is not a hundredth.
const (
	zeroDecimal  = " bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf "
	threeDecimal = " bhd jod kwd omr tnd "
)

// money is an amount of the smallest unit of a currency, in words.
func money(v any, currency string) string {
	n, _ := v.(json.Number)
	digits := n.String()
	sign := ""
	if s, negative := strings.CutPrefix(digits, "-"); negative {
		digits, sign = s, "-"
	}
	if digits == "" || len(digits) > 15 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	if currency == "" {
		return sign + digits
	}
	places := 2
	switch c := " " + strings.ToLower(currency) + " "; {
	case strings.Contains(zeroDecimal, c):
		places = 0
	case strings.Contains(threeDecimal, c):
		places = 3
	}
	if places > 0 {
		if short := places + 1 - len(digits); short > 0 {
			digits = strings.Repeat("0", short) + digits
		}
		digits = digits[:len(digits)-places] + "." + digits[len(digits)-places:]
	}
	return sign + digits + " " + strings.ToUpper(currency)
}
