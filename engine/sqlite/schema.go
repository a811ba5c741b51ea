package sqlite

import (
	"slices"
	"strconv"
	"strings"
)

// object is a row of the schema table.
type object struct {
	kind, name, table string
	root              uint32
	sql               string
}

// maxObjects bounds a schema.
const maxObjects = 10_000

// read reads the schema.
func (d *DB) read() error {
	if d.pages == 0 {
		return nil
	}
	var l layout
	return d.rows(1, func(_ int64, p payload) (bool, error) {
		if len(d.schema) >= maxObjects {
			return false, damaged("schema of more than %d objects", maxObjects)
		}
		if err := p.columns(&l); err != nil {
			return false, err
		}
		if len(l.types) < 5 {
			return false, damaged("schema with %d columns", len(l.types))
		}
		var v [5]Value
		for i := range v {
			var err error
			if v[i], err = p.value(&l, i); err != nil {
				return false, err
			}
		}
		root, _ := v[3].Int()
		d.schema = append(d.schema, object{
			kind: v[0].String(), name: v[1].String(), table: v[2].String(), root: uint32(root), sql: v[4].String(),
		})
		return true, nil
	})
}

// column is a column of a table as it was declared.
type column struct {
	name string
	// stored is its place in a record; -1 for one that is computed.
	stored int
	// rowid says that the column stands for the rowid.
	rowid bool
	// missing is the value of rows that were written before the column was
	// added.
	missing Value
	// plain says that texts in it are compared by their bytes.
	plain bool
}

// Table is a table of a database.
type Table struct {
	db      *DB
	name    string
	root    uint32
	columns []column
	// unique lists the columns of the indexes that SQLite makes by itself.
	unique [][]string
}

// Table returns the table with the given name; ok is false when there is none,
// or when what has the name is a view or no ordinary table.
func (d *DB) Table(name string) (t *Table, ok bool) {
	for _, o := range d.schema {
		if o.kind != "table" || !strings.EqualFold(o.name, name) || o.root == 0 {
			continue
		}
		t := &Table{db: d, name: o.name, root: o.root}
		if !t.declare(o.sql) {
			return nil, false
		}
		return t, true
	}
	return nil, false
}

// Has reports whether the table has a column.
func (t *Table) Has(name string) bool { return t.find(name) >= 0 }

func (t *Table) find(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
}

// declare takes a CREATE TABLE statement apart.
func (t *Table) declare(sql string) bool {
	tokens := lex(sql)
	at := slices.IndexFunc(tokens, func(k token) bool { return k.is("(") })
	if at < 0 {
		return false
	}
	parts, rest := split(tokens[at+1:])
	for i, k := range rest {
		if k.word("without") && i+1 < len(rest) && rest[i+1].word("rowid") {
			return false
		}
	}
	stored := 0
	for _, part := range parts {
		if len(part) == 0 {
			return false
		}
		if constraint(part) {
			t.constrain(part)
			continue
		}
		c := column{name: part[0].text, stored: stored, plain: true}
		if t.define(&c, part[1:]) {
			stored++
		} else {
			c.stored = -1
		}
		t.columns = append(t.columns, c)
	}
	return len(t.columns) > 0
}

// constraint reports whether a part of a declaration is about the table.
func constraint(part []token) bool {
	for _, w := range []string{"constraint", "primary", "unique", "check", "foreign"} {
		if part[0].word(w) {
			return true
		}
	}
	return false
}

// define reads what follows a column's name; it reports whether the column is
// stored.
func (t *Table) define(c *column, rest []token) (stored bool) {
	stored = true
	integer := len(rest) > 0 && rest[0].word("integer") && (len(rest) == 1 || !rest[1].typeWord())
	for i, k := range rest {
		next := func(n int) token {
			if i+n < len(rest) {
				return rest[i+n]
			}
			return token{}
		}
		switch {
		case k.word("primary") && next(1).word("key"):
			if integer && !next(2).word("desc") {
				c.rowid = true
			} else {
				t.unique = append(t.unique, []string{c.name})
			}
		case k.word("unique"):
			t.unique = append(t.unique, []string{c.name})
		case k.word("collate"):
			c.plain = next(1).word("binary")
		case k.word("default"):
			c.missing = literal(next(1), next(2))
		case k.word("as") && next(1).is("("):
			stored = slices.ContainsFunc(rest[i:], func(k token) bool { return k.word("stored") })
		}
	}
	return stored
}

// constrain reads a constraint on the table.
func (t *Table) constrain(part []token) {
	for i, k := range part {
		if !k.word("primary") && !k.word("unique") {
			continue
		}
		open := slices.IndexFunc(part[i:], func(k token) bool { return k.is("(") })
		if open < 0 {
			return
		}
		names, _ := columnNames(part[i+open+1:])
		if k.word("primary") && len(names) == 1 {
			if at := t.find(names[0]); at >= 0 && t.integer(at) {
				t.columns[at].rowid = true
				return
			}
		}
		t.unique = append(t.unique, names)
		return
	}
}

// integer reports whether a column is declared INTEGER and nothing else.
func (t *Table) integer(at int) bool {
	for _, o := range t.db.schema {
		if o.kind != "table" || o.name != t.name {
			continue
		}
		tokens := lex(o.sql)
		open := slices.IndexFunc(tokens, func(k token) bool { return k.is("(") })
		parts, _ := split(tokens[open+1:])
		n := 0
		for _, part := range parts {
			if constraint(part) {
				continue
			}
			if n == at {
				return len(part) > 1 && part[1].word("integer") && (len(part) == 2 || !part[2].typeWord())
			}
			n++
		}
	}
	return false
}

// literal is the value of a DEFAULT that is one.
func literal(a, b token) Value {
	if a.is("-") || a.is("+") {
		v := literal(b, token{})
		if a.is("-") {
			v.int, v.float = -v.int, -v.float
		}
		return v
	}
	if a.quote == '\'' || a.quote == '"' {
		return Value{Kind: Text, bytes: []byte(a.text)}
	}
	switch strings.ToLower(a.text) {
	case "true":
		return Value{Kind: Integer, int: 1}
	case "false":
		return Value{Kind: Integer}
	}
	if n, err := strconv.ParseInt(a.text, 10, 64); err == nil {
		return Value{Kind: Integer, int: n}
	}
	if f, err := strconv.ParseFloat(a.text, 64); err == nil {
		return Value{Kind: Float, float: f}
	}
	return Value{}
}

// index finds the root of an index that begins with a column, whose texts are
// compared by their bytes.
func (t *Table) index(name string) (root uint32, ok bool) {
	at := t.find(name)
	if at < 0 || !t.columns[at].plain {
		return 0, false
	}
	best := -1
	for _, o := range t.db.schema {
		if o.kind != "index" || !strings.EqualFold(o.table, t.name) || o.root == 0 {
			continue
		}
		columns, sound := t.indexed(o)
		if !sound || len(columns) == 0 || !strings.EqualFold(columns[0], name) {
			continue
		}
		// The narrowest one costs the least to read.
		if best < 0 || len(columns) < best {
			best, root = len(columns), o.root
		}
	}
	return root, best >= 0
}

// indexed lists the columns of an index; sound is false for one that is
// partial, sorted otherwise or over expressions.
func (t *Table) indexed(o object) (columns []string, sound bool) {
	if o.sql == "" {
		n, err := strconv.Atoi(o.name[strings.LastIndexByte(o.name, '_')+1:])
		if err != nil || n < 1 || n > len(t.unique) {
			return nil, false
		}
		return t.unique[n-1], true
	}
	tokens := lex(o.sql)
	open := slices.IndexFunc(tokens, func(k token) bool { return k.is("(") })
	if open < 0 {
		return nil, false
	}
	parts, rest := split(tokens[open+1:])
	if len(rest) > 0 {
		return nil, false // WHERE
	}
	for _, part := range parts {
		if len(part) != 1 && !(len(part) == 2 && part[1].word("asc")) {
			return nil, false
		}
		columns = append(columns, part[0].text)
	}
	return columns, true
}

func columnNames(tokens []token) (names []string, rest []token) {
	parts, rest := split(tokens)
	for _, part := range parts {
		if len(part) > 0 {
			names = append(names, part[0].text)
		}
	}
	return names, rest
}
