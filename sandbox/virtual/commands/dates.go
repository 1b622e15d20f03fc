package commands

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/timefmt-go"
)

func date(c *Call, f *flags) int {
	when, err := c.when(f)
	if err != nil {
		return c.usage("%s", Why(err))
	}
	format := "%a %b %e %H:%M:%S %Z %Y"
	switch {
	case f.str("I", "") == "seconds":
		format = "%Y-%m-%dT%H:%M:%S+00:00"
	case f.has("I"):
		format = "%Y-%m-%d"
	case f.has("R"):
		format = "%a, %d %b %Y %H:%M:%S +0000"
	}
	for _, arg := range f.args {
		if !strings.HasPrefix(arg, "+") {
			return c.usage("unexpected '%s'", arg)
		}
		format = arg[1:]
	}
	format = strings.ReplaceAll(format, "%N", fmt.Sprintf("%09d", when.Nanosecond()))
	format = strings.ReplaceAll(format, "%3N", fmt.Sprintf("%03d", when.Nanosecond()/1e6))
	c.printf("%s\n", timefmt.Format(when, format))
	return 0
}

// when is the time that -r or -d says, or else now.
func (c *Call) when(f *flags) (time.Time, error) {
	switch {
	case f.has("r"):
		info, err := c.FS.Stat(c.abs(f.str("r", "")))
		if err != nil {
			return time.Time{}, err
		}
		return info.ModTime().UTC(), nil
	case f.has("d"):
		return parseDate(f.str("d", ""), c.Now())
	}
	return c.Now().UTC(), nil
}

// units are the steps of a date.
var units = map[string]struct {
	months, days int
	time         time.Duration
}{
	"sec": {time: time.Second}, "second": {time: time.Second}, "min": {time: time.Minute}, "minute": {time: time.Minute},
	"hour": {time: time.Hour}, "day": {days: 1}, "week": {days: 7}, "month": {months: 1}, "year": {months: 12},
}

// parseDate reads the common forms of date -d: a moment, then any number of
// steps such as "+2 days", "3 hours ago", "yesterday".
func parseDate(s string, now time.Time) (time.Time, error) {
	bad := fmt.Errorf("invalid date '%s'", s)
	if unix, ok := strings.CutPrefix(s, "@"); ok {
		n, err := strconv.ParseFloat(unix, 64)
		if err != nil {
			return now, bad
		}
		return time.Unix(int64(n), int64((n-float64(int64(n)))*1e9)).UTC(), nil
	}
	when, words := leadingTime(strings.Fields(s), now.UTC())
	for i := 0; i < len(words); i++ {
		switch w := strings.ToLower(words[i]); w {
		case "now", "today", "utc", "+":
		case "yesterday":
			when = when.AddDate(0, 0, -1)
		case "tomorrow":
			when = when.AddDate(0, 0, 1)
		case "midnight":
			when = when.Truncate(24 * time.Hour)
		case "next", "last":
			words[i] = map[string]string{"next": "1", "last": "-1"}[w]
			i--
		default:
			n, err := strconv.Atoi(w)
			if err != nil || i+1 == len(words) {
				return now, bad
			}
			unit, ok := units[strings.TrimSuffix(strings.ToLower(words[i+1]), "s")]
			if !ok {
				return now, bad
			}
			if i++; i+1 < len(words) && words[i+1] == "ago" {
				n, i = -n, i+1
			}
			when = when.AddDate(0, n*unit.months, n*unit.days).Add(time.Duration(n) * unit.time)
		}
	}
	return when, nil
}

// leadingTime reads a date, a time or both from the first words.
func leadingTime(words []string, now time.Time) (time.Time, []string) {
	layouts := []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02", "2006/01/02", "01/02/2006", "20060102", "2 Jan 2006", "Jan 2 2006", "Jan 2 2006 15:04:05",
		"January 2 2006", "Mon Jan 2 15:04:05 MST 2006", "Mon 2 Jan 2006 15:04:05 -0700",
	}
	for n := min(len(words), 6); n > 0; n-- {
		text := strings.ReplaceAll(strings.Join(words[:n], " "), ",", "")
		for _, layout := range layouts {
			if t, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
				return t.UTC(), words[n:]
			}
		}
		if t, err := time.Parse("15:04", text); err == nil && n == 1 {
			return now.Truncate(24 * time.Hour).Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute), words[1:]
		}
	}
	return now, words
}
