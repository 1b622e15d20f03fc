package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	driversqlite "modernc.org/sqlite"

	"github.com/heddlehq/heddle/state"
)

// A conn is one connection to the file, for one goroutine at a time. It speaks
// to the driver without database/sql: there is no pool to manage, and every
// statement is prepared once.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	last  int64                        // rowid of the last insert
	fault func(statement string) error // called before each statement; nil in production
}

// connect opens a connection to the file with these pragmas.
func connect(path, mode string, pragmas ...string) (*conn, error) {
	query := url.Values{"mode": {mode}, "_pragma": pragmas}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	connector, err := driversqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(context.Background())
	if err != nil {
		return nil, explain(err)
	}
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close() // its error is that of the last execution, reported then
	}
	return c.raw.Close()
}

// exec runs one statement and says how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int64, error) {
	stmt, err := c.begin(sql, args)
	if err != nil {
		return 0, err
	}
	res, err := stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.args)
	if err != nil {
		return 0, explain(err)
	}
	if c.last, err = res.LastInsertId(); err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs one statement and calls each for every row, which is good until
// each returns. Each must not use the connection.
func (c *conn) query(sql string, each func(row) error, args ...any) (err error) {
	stmt, err := c.begin(sql, args)
	if err != nil {
		return err
	}
	return c.rows(context.Background(), stmt, each)
}

func (c *conn) rows(ctx context.Context, stmt driver.Stmt, each func(row) error) (err error) {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, c.args)
	if err != nil {
		return explain(err)
	}
	defer func() {
		if e := rows.Close(); err == nil && e != nil {
			err = explain(e)
		}
	}()
	for r := make(row, len(rows.Columns())); ; {
		if err := rows.Next(r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return explain(err)
		}
		if err := each(r); err != nil {
			return err
		}
	}
}

// begin prepares a statement, if this is its first use, and its arguments.
func (c *conn) begin(sql string, args []any) (driver.Stmt, error) {
	if c.fault != nil {
		if err := c.fault(sql); err != nil {
			return nil, err
		}
	}
	stmt := c.stmts[sql]
	if stmt == nil {
		var err error
		if stmt, err = c.raw.Prepare(sql); err != nil {
			return nil, explain(err)
		}
		c.stmts[sql] = stmt
	}
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: value(a)})
	}
	return stmt, nil
}

// value is what the driver takes: a zero time is NULL.
func value(a any) driver.Value {
	switch a := a.(type) {
	case int:
		return int64(a)
	case time.Time:
		if a.IsZero() {
			return nil
		}
		return a.UnixMicro()
	default:
		return a
	}
}

// A row is one row of a result.
type row []driver.Value

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r row) text(i int) string {
	s, _ := r[i].(string)
	return s
}

func (r row) bytes(i int) []byte {
	b, _ := r[i].([]byte)
	return b
}

// value is what bytes gives, but not nil: an empty value is one.
func (r row) value(i int) []byte {
	if b := r.bytes(i); b != nil {
		return b
	}
	return []byte{}
}

func (r row) time(i int) time.Time {
	if n, ok := r[i].(int64); ok {
		return time.UnixMicro(n).UTC()
	}
	return time.Time{}
}

// Result codes of SQLite that say that the file is not what we wrote.
const (
	codeCorrupt = 11
	codeNotADB  = 26
)

// explain marks the driver's errors that mean damage.
func explain(err error) error {
	var e *driversqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == codeCorrupt || e.Code()&0xff == codeNotADB) {
		return fmt.Errorf("%w: %w", state.ErrDamaged, err)
	}
	return err
}
