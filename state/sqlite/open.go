package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/heddlehq/heddle/state"
)

// migrations bring the file from one format to the next, in order of their
// names. One that was released is never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a file as ours: "HEDD".
const applicationID = 0x48454444

// A file up to smallBytes is checked whenever it is opened, a bigger one when
// its last owner did not close it, and never for longer than checkFor: damage
// that this does not find is found by whoever reads the damaged page.
const (
	smallBytes = 8 << 20
	checkFor   = 2 * time.Second
)

// prepare makes the file ready to be owned: of the current format, not
// damaged, without leases or claims.
func (c *conn) prepare(ctx context.Context, now time.Time) error {
	version, err := c.format()
	if err != nil {
		return err
	}
	if version > 0 {
		if err := c.checkDamage(ctx); err != nil {
			return err
		}
	}
	mode := ""
	if err := c.query(`PRAGMA journal_mode = WAL`, func(r row) error { mode = r.text(0); return nil }); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file cannot have a write-ahead log: its journal mode is %q", mode)
	}
	if err := c.migrate(version); err != nil {
		return err
	}
	return c.inTx(
		statement{`UPDATE health SET clean = 0 WHERE n = 1`, nil},
		statement{`UPDATE conversations SET ready_at = ?1 WHERE owner IS NOT NULL AND ready_at > ?1`, []any{now}},
		statement{`UPDATE posts SET due_at = ?1 WHERE owner IS NOT NULL AND due_at > ?1`, []any{now}},
	)
}

// format reads the number of migrations that the file has seen, 0 for an empty
// file, and fails if the file is not one that we can read.
func (c *conn) format() (int, error) {
	id, err := c.number(`PRAGMA application_id`)
	if err != nil {
		return 0, err
	}
	version, err := c.number(`PRAGMA user_version`)
	if err != nil {
		return 0, err
	}
	tables, err := c.number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return 0, err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	switch {
	case err != nil:
		return 0, err
	case tables > 0 && id != applicationID:
		return 0, errors.New("the file is the database of another program")
	case int(version) > len(files):
		return 0, fmt.Errorf("%w: it has format %d, known are those up to %d", state.ErrNewer, version, len(files))
	}
	return int(version), nil
}

// checkFormat fails unless the file has the current format.
func checkFormat(c *conn) error {
	version, err := c.format()
	if err != nil {
		return err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err == nil && version < len(files) {
		err = fmt.Errorf("the file has format %d: start the gateway to bring it to %d", version, len(files))
	}
	return err
}

// migrate runs the migrations after a version, each in a transaction of its own.
func (c *conn) migrate(version int) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for i, name := range files[version:] {
		script, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		var all []statement
		for s := range strings.SplitSeq(string(script), ";\n") {
			if strings.TrimSpace(s) != "" {
				all = append(all, statement{s, nil})
			}
		}
		all = append(all,
			statement{fmt.Sprintf("PRAGMA application_id = %d", applicationID), nil},
			statement{fmt.Sprintf("PRAGMA user_version = %d", version+i+1), nil})
		if err := c.inTx(all...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type statement struct {
	sql  string
	args []any
}

// inTx runs statements in one transaction.
func (c *conn) inTx(all ...statement) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, s := range append(all, statement{"COMMIT", nil}) {
		if _, err := c.exec(s.sql, s.args...); err != nil {
			c.rollback()
			return err
		}
	}
	return nil
}

// rollback ends a transaction. It fails only if the failure that it is for has
// rolled back already.
func (c *conn) rollback() {
	fault := c.fault
	c.fault = nil
	_, _ = c.exec("ROLLBACK")
	c.fault = fault
}

func (c *conn) checkDamage(ctx context.Context) error {
	clean, err := c.number(`SELECT clean FROM health`)
	if err != nil {
		return err
	}
	size, err := c.number(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)
	if err != nil || clean != 0 && size > smallBytes {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	stmt, err := c.begin(`PRAGMA quick_check(1)`, nil)
	if err != nil {
		return err
	}
	found := "ok"
	err = c.rows(ctx, stmt, func(r row) error { found = r.text(0); return nil })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil:
		return err
	case found != "ok":
		return fmt.Errorf("%w: %s", state.ErrDamaged, found)
	}
	return nil
}

func (c *conn) number(sql string) (n int64, err error) {
	err = c.query(sql, func(r row) error { n = r.int(0); return nil })
	return n, err
}
