package virtual_test

import (
	"os"
	"testing"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual"
)

func TestMain(m *testing.M) {
	if virtual.IsWorker(os.Args) {
		os.Exit(virtual.Worker(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func open(t testing.TB, o virtual.Options) sandbox.Sandbox {
	t.Helper()
	p := virtual.New(o)
	t.Cleanup(func() { _ = p.Close() })
	s, err := p.Open(t.Context(), t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSmoke(t *testing.T) {
	s := open(t, virtual.Options{})
	for _, script := range []string{
		`echo hi; echo err >&2; printf '%s\n' a b; exit 3`,
		`cat <(echo a) <(echo b) < /dev/null; echo $$ ~root; type cat cd f; f(){ :; }; type f; command -v f cat nope; echo $?`,
		`echo 'echo sourced $1; return 4' > s.sh; . ./s.sh x; echo $?; bash s.sh; chmod +x s.sh; ./s.sh; cat s.sh | head -1; eval 'cat <(echo $$)'`,
		`while :; do echo y; done | cat | { read x; echo got $x; }; echo ${PIPESTATUS[@]}; f(){ f; }; f`,
		`x=$(cat <<'E'
a "b"
E
); echo "$x"; [[ -O s.sh ]] && echo owned; printf -v q '%05d' 42; echo $q; pwd; cd /; pwd; ls; nope; echo $?`,
	} {
		r, err := s.Exec(t.Context(), sandbox.Command{Script: script})
		t.Logf("%v %+v\n%s", err, r.ExitCode, r.Output)
	}
}
