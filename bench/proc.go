//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// usage is what the kernel has counted for a process and its children.
type usage struct {
	cpu     time.Duration
	rss     int64 // bytes, now
	written int64 // bytes sent to the disk
}

// usageOf reads it. A process that is gone has used nothing.
func usageOf(pid int) usage {
	var u usage
	// The process's own clock, in nanoseconds; /proc/PID/stat has ticks.
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|2), &t) == nil {
		u.cpu = time.Duration(t.Nano())
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	if f := statFields(dir + "stat"); len(f) > 21 {
		u.cpu += time.Duration(number(f[13])+number(f[14])) * tick // children that have ended
		u.rss = number(f[21]) * int64(os.Getpagesize())
	}
	u.written = number(field(dir+"io", "write_bytes:"))
	kids, _ := filepath.Glob(dir + "task/*/children")
	for _, file := range kids {
		list, _ := os.ReadFile(file)
		for kid := range strings.FieldsSeq(string(list)) {
			k := usageOf(int(number(kid)))
			u = usage{cpu: u.cpu + k.cpu, rss: u.rss + k.rss, written: u.written + k.written}
		}
	}
	return u
}

// statFields are those of a /proc/PID/stat after the name, which may hold blanks.
func statFields(file string) []string {
	b, _ := os.ReadFile(file)
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// busy is the processor time that the whole machine has spent on work.
func busy() time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	var sum int64
	for i, f := range strings.Fields(line) {
		if i != 0 && i != 4 && i != 5 && i < 9 { // not idle, not waiting for a disk; guests are counted as users
			sum += number(f)
		}
	}
	return time.Duration(sum) * tick
}

// own is the processor time of this process.
func own() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// machine describes where the figures come from.
func machine(dir string) string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	var disk syscall.Statfs_t
	kind := "unknown"
	if syscall.Statfs(dir, &disk) == nil {
		kind = map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x794C7630: "overlayfs"}[disk.Type]
	}
	return fmt.Sprintf("%s, %s MHz; Linux %s; the store on %s", field("/proc/cpuinfo", "model name\t:"), field("/proc/cpuinfo", "cpu MHz\t\t:"),
		strings.TrimSpace(string(kernel)), kind)
}

func field(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// number of a text that the kernel wrote, 0 if it is none.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// stored is the size of all files below a folder, in bytes.
func stored(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that went away has no size
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
