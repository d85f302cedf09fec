package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/dump"
)

// table is one of the owners' tables.
type table struct {
	name    string
	columns []column
	key     []string // the columns of the primary key, in its order
}

type column struct {
	dump.Column
	nullable bool
}

// tables looks into what SQLite says of itself; a column of a primary key is never null in ours.
func (e *sqliteEngine) tables(ctx context.Context, q db.DBTX) ([]table, error) {
	return readTables(ctx, q, `select m.name, c.name, case c.type when 'INTEGER' then 'bigint' else lower(c.type) end,
			c."notnull" = 0 and c.pk = 0, c.pk
		from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' order by m.name, c.cid`,
		`select m.name, f."table" from sqlite_master m join pragma_foreign_key_list(m.name) f where m.type = 'table'`)
}

func (e *postgresEngine) tables(ctx context.Context, q db.DBTX) ([]table, error) {
	return readTables(ctx, q, `select t.relname, a.attname, format_type(a.atttypid, a.atttypmod), not a.attnotnull,
			coalesce(array_position(k.conkey::int[], a.attnum::int), 0)
		from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
		left join pg_constraint k on k.conrelid = t.oid and k.contype = 'p'
		where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace order by t.relname collate "C", a.attnum`,
		`select t.relname, o.relname from pg_constraint f join pg_class t on t.oid = f.conrelid
		join pg_class o on o.oid = f.confrelid where f.contype = 'f' and t.relnamespace = current_schema()::regnamespace`)
}

func readTables(ctx context.Context, q db.DBTX, columns, references string) ([]table, error) {
	var all []table
	keys := map[string]map[int]string{}
	err := each(ctx, q, columns, func(rows *sql.Rows) error {
		var name string
		var c column
		var place int
		if err := rows.Scan(&name, &c.Name, &c.Kind, &c.nullable, &place); err != nil || !owned(name) {
			return err
		}
		if !c.Kind.Known() {
			return fmt.Errorf("column %s.%s has the type %s", name, c.Name, c.Kind)
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, table{name: name})
			keys[name] = map[int]string{}
		}
		t := &all[len(all)-1]
		t.columns = append(t.columns, c)
		if place > 0 {
			keys[name][place] = c.Name
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	for n := range all {
		for place := 1; keys[all[n].name][place] != ""; place++ {
			all[n].key = append(all[n].key, keys[all[n].name][place])
		}
	}
	before := map[string][]string{}
	err = each(ctx, q, references, func(rows *sql.Rows) error {
		var from, to string
		err := rows.Scan(&from, &to)
		before[from] = append(before[from], to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return inOrderOf(all, before)
}

// owned says whether a table belongs to an owner, and not to an engine or to what migrates.
func owned(name string) bool {
	return strings.HasPrefix(name, "srv_") || strings.HasPrefix(name, "agt_")
}

// inOrderOf puts each table after those that it refers to, and else by name.
func inOrderOf(all []table, before map[string][]string) ([]table, error) {
	var sorted []table
	done := map[string]bool{}
	for len(sorted) < len(all) {
		n := slices.IndexFunc(all, func(t table) bool {
			return !done[t.name] && !slices.ContainsFunc(before[t.name], func(other string) bool {
				return other != t.name && !done[other]
			})
		})
		if n < 0 {
			return nil, errors.New("tables refer to each other in a circle")
		}
		sorted = append(sorted, all[n])
		done[all[n].name] = true
	}
	return sorted, nil
}

func each(ctx context.Context, q db.DBTX, query string, row func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return typed(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return typed(rows.Err())
}
