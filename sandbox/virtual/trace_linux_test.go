package virtual_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual"
)

// hostile scripts reach for the host in every way known.
var hostile = []string{
	`cat /etc/passwd /proc/self/environ /proc/1/cmdline; ls / /etc /root /proc /home; echo x > /etc/x; : > /dev/shm/y`,
	`exec /bin/ls; exec ls /`,
	`/bin/ls; /usr/bin/env; /bin/sh -c 'id'; ./x; ../x; bash -c 'cat /etc/hostname'; python3 -c 1; curl http://127.0.0.1/; nc -l 1`,
	`cat <(cat /etc/passwd); diff <(ls /) <(ls /etc); echo x > >(cat); eval 'cat <(id)'; eval 'echo x > >(cat)'`,
	`echo ~root ~daemon ~nobody ~; cd ~root; x=~root; echo ${x} ~+ ~-; eval 'echo ~bin'; HOME= ; echo ~; unset HOME; echo ~; cd`,
	`type ls bash /bin/ls; type -p ls; type -t ls; type -P ls; type -a ls; hash ls; hash -r; command -v ls; command -V ls; command -pv ls; which ls`,
	`command type ls; builtin type ls; builtin command -v ls; command builtin type ls; command command -v /bin/ls; builtin hash ls; \type ls; x=type; $x ls; eval type ls`,
	`source /etc/profile; . /etc/profile; . etc/profile; source /proc/self/environ; command . /etc/profile; builtin source /etc/profile; PATH=/etc; . profile; . passwd`,
	`pwd -P; command pwd -P; builtin pwd -P; cd -P /; pwd -P; dirs; pushd /etc; popd; cd /proc/self/root; cd /etc/..`,
	`echo $$ $PPID $BASHPID ${PPID} "$$" $(( $$ )); eval 'echo $$'; kill -9 $$; kill -9 1; kill -9 $PPID`,
	`[[ -O /etc/passwd ]]; [[ -G /etc/passwd ]]; [ -O /tmp ]; test -G /tmp; [[ -O /tmp ]]; [[ -G /home/user ]]; eval '[[ -O /tmp ]]'; env test -O /tmp; find /tmp -exec test -O {} \;`,
	`x=(1 2); unset 'x[$([[ -O /tmp ]])]'; declare -A y; unset 'y[$(type ls)]'; i='x[$([[ -O /tmp ]])]'; echo $((i)) ${x[i]} ${!i}; [[ -v 'x[$(id)]' ]]; let 'x[$(id)]=1'; declare "x[\$(id)]=1"; read 'x[$(id)]' < x; printf -v 'x[$(id)]' a`,
	`unset "a[\$(cat /etc/passwd)]"; shopt -s expand_aliases; alias o='echo $([[ -O /tmp ]])'; o; alias p='cat <(id)'; p`,
	`[[ -r /etc/passwd ]]; [[ -w /etc ]]; [[ -x /bin/ls ]]; [ -r /etc/passwd ]; test -e /etc/passwd; [[ /etc/passwd -nt /etc/group ]]; [[ /bin -ef /usr/bin ]]; [ -t 0 ]; [ -p /dev/stdin ]`,
	`trap 'cat /etc/passwd; [[ -O /tmp ]]; cat <(id)' EXIT ERR; false`,
	`awk 'BEGIN{system("id"); "id" | getline x; print x; while((getline l < "/etc/passwd")>0) print l; print "x" > "/etc/awk"; print "x" | "cat > /etc/y"; close("/etc/awk"); print ENVIRON["PATH"]}' /etc/passwd`,
	`awk '{print > "/tmp/../etc/z"}' /etc/passwd; awk -f /etc/passwd; awk 'BEGIN{ARGV[1]="/etc/passwd"; ARGC=2} {print}'; awk 'BEGIN{printf "x" | "sh"}'`,
	`jq -n 'env, $ENV, input_filename, $__loc__'; jq -n 'import "a" as a; 1'; jq -n 'include "/etc/passwd"; 1'; jq -f /etc/passwd .; jq --rawfile a /etc/passwd -n '$a'; jq . /etc/passwd; jq -n '[limit(1;inputs)]'`,
	`sed -n p /etc/passwd; sed 'r /etc/passwd' /home/user/x; echo a | sed 'w /etc/sed'; echo a | sed 's/a/id/e'; sed -i s/a/b/ /etc/passwd; echo | sed '1e id'`,
	`find / -maxdepth 2; find /etc -delete; find . -exec /bin/sh -c id \; ; grep -r root /etc; grep -f /etc/passwd x; xargs -a /etc/passwd echo; tar cf t.tar /etc; tar xf /etc/passwd`,
	`ln -s /etc/passwd l; cat l; ln -s / r; ls r/etc; cat r/etc/passwd; readlink -f l; cp -r /etc .; rm -rf /etc /proc; mkfifo p; mknod d c 1 3`,
	`mapfile -t a < /etc/passwd; echo ${#a[@]}; read x < /etc/passwd; echo $(< /etc/passwd); while read l; do echo $l; done < /proc/self/maps; exec 3< /etc/passwd; exec < /etc/passwd; exec > /etc/out`,
	`echo /etc/* /proc/self/* ~/* */*; shopt -s globstar nullglob; echo /**; for f in /etc/*.conf; do echo $f; done`,
	`export TMPDIR=/tmp; cat <(id); TMPDIR=/tmp bash -c 'echo x > >(cat)'; unset TMPDIR; bash -c 'echo x > >(cat)'; cat < /tmp/sh-interp-0; cat < $'/\0/sh-interp-0'; env TMPDIR=/tmp bash -c 'eval "echo > >(id)"'`,
	`date; date -d @0; TZ=America/New_York date; TZ=:/etc/localtime date; printf '%(%F)T\n' -1; stat /etc/localtime; touch -r /etc/passwd x`,
	`echo > /dev/tcp/127.0.0.1/80; cat < /dev/tcp/127.0.0.1/80; cat /dev/tty /dev/random /dev/fd/3 /dev/stdin; echo > /dev/tty; hostname; ulimit -a; umask; nproc; uname -a; id; whoami`,
	`bind; compgen -f /etc/; complete; history; fc; jobs; disown; enable; help; suspend; caller; times; newgrp; logout`,
	`mktemp; mktemp -d -p /var; split -l1 /etc/passwd; gzip /etc/passwd; timeout 1 /bin/ls; nohup /bin/ls; env -C /etc ls; nice ls /; (cd /etc; . ./profile); sleep 0.1 & wait; coproc cat`,
	`printf '#!/usr/bin/python\nprint(1)' > s; chmod +x s; ./s; printf '#!/bin/cat\n' > t; chmod +x t; ./t; printf '#!/etc/passwd\n' > u; chmod +x u; ./u; bash /etc/profile; sh < /etc/profile`,
	`select x in a b; do break; done < /etc/passwd; getopts ab o; let x=1; declare -n r=x; declare -p r; time ls; [[ x =~ $(cat /etc/passwd) ]]; case $(ls /etc) in *) ;; esac`,
	`f() { f2() { cat <(id); }; f2; }; f; $(echo type) ls; "ty"pe ls; a=(type ls); "${a[@]}"; command -- type ls; exec -a x ls`,
}

// The runtime may start and signal threads and end; nothing else.
var harmless = regexp.MustCompile(`^(clone3?\(.*CLONE_THREAD|tgkill\(|exit\(|exit_group\(|\+\+\+|---|prlimit64\(0, RLIMIT_CORE|<\.\.\. (clone3?|tgkill|exit|prlimit64) resumed)`)

// TestTrace runs hostile scripts and the whole corpus under strace: from the
// moment it serves, the worker may touch no file, process or socket.
func TestTrace(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("STRACE IS NOT INSTALLED: that the sandbox stays off the host is NOT tested")
	}
	self := worker
	if self == "" {
		if self, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	log, wrapper := filepath.Join(dir, "log"), filepath.Join(dir, "worker")
	text := fmt.Sprintf("#!/bin/sh\nexec %s -f -qq -s 200 -o %s -e trace=%%file,%%process,%%network,prlimit64,mknod,mknodat -- %s \"$@\"\n", strace, log, self)
	if err := os.WriteFile(wrapper, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	p := provider(t, virtual.Options{Exe: wrapper})
	s := open(t, p, "x", nil)
	scripts := hostile
	corpus, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(corpus) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range corpus {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".sh") {
				scripts = append(scripts, string(f.Data))
			}
		}
	}
	for _, script := range scripts {
		if _, err := s.Exec(t.Context(), sandbox.Command{Script: script, Timeout: 10 * time.Second}); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
	for _, name := range []string{"/etc/passwd", "../../etc/passwd", "/proc/self/environ"} {
		if data, err := s.ReadFile(t.Context(), name); err == nil && strings.Contains(string(data), "root:x") {
			t.Errorf("reads %s", name)
		}
	}
	_ = p.Close()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	serving, calls := false, 0
	for line := range strings.Lines(string(data)) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if strings.HasPrefix(call, "prlimit64(0, RLIMIT_CORE, {") {
			serving = true
		}
		if serving {
			calls++
			if !harmless.MatchString(call) {
				t.Errorf("touches the host: %s", line)
			}
		}
	}
	if !serving || calls < 2 {
		t.Fatalf("the trace does not show where serving begins:\n%.2000s", data)
	}
}
