//! Statements over tables of this test.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use rowplane_sql::{
    Catalog, Cell, Column, ColumnType, Error, Function, Lookup, ResultColumn, Row, Rows, Sink, Statement,
    Stop, Summary, Table, Watch, run,
};

/// Rows of (namespace, name, node, size); hidden: the time, and twice the size.
#[derive(Clone)]
struct Things {
    columns: Vec<Column>,
    rows: Arc<Vec<Thing>>,
}

#[derive(Clone)]
struct Thing {
    namespace: String,
    name: String,
    node: Option<String>,
    size: i64,
}

impl Row for Thing {
    fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        Ok(match column {
            1 => Cell::text(&*self.namespace),
            2 => Cell::text(&*self.name),
            3 => Cell::maybe_text(self.node.as_deref()),
            4 if self.size == 13 => return Err(Error::table(std::io::Error::other("thirteen"))),
            4 => Cell::Integer(self.size),
            _ => Cell::Integer(self.size * 2),
        })
    }
}

impl Table for Things {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn key(&self) -> &[usize] {
        &[1, 2]
    }

    fn has_times(&self) -> bool {
        true
    }

    fn size(&self) -> u64 {
        self.rows.len() as u64
    }

    fn rows(&self, lookup: &Lookup) -> Result<Rows, Error> {
        let lookup = lookup.clone();
        let wanted = move |thing: &&Thing| {
            let values = [&thing.namespace, &thing.name];
            lookup.key.iter().zip(values).all(|(set, value)| set.contains(value))
        };
        let found: Vec<Thing> = self.rows.iter().filter(wanted).cloned().collect();
        Ok(Box::new(found.into_iter().map(|thing| Ok(Arc::new(thing) as Arc<dyn Row>))))
    }
}

struct Tables(Things);

impl Catalog for Tables {
    fn names(&self) -> Vec<String> {
        vec!["things".to_owned(), "things.example.com".to_owned()]
    }

    fn table(&self, _: &str) -> Result<Arc<dyn Table>, Error> {
        Ok(Arc::new(self.0.clone()))
    }

    fn views(&self) -> &[(&'static str, &'static str)] {
        &[("large", "SELECT namespace, name FROM things WHERE size > 90")]
    }

    fn functions(&self) -> Vec<Function> {
        vec![Function::new("shout", 1, |arguments| match &arguments[0] {
            Cell::Text(text) => Ok(Cell::text(format!("{text}!"))),
            _ => Err("shout() takes a text".to_owned()),
        })]
    }
}

#[derive(Default)]
struct Counted {
    scanned: AtomicU64,
    /// Looks at the watch until it says stop; 0 for never.
    patience: AtomicU64,
}

impl Watch for Counted {
    fn stop(&self) -> Option<Stop> {
        let left = self.patience.load(Ordering::Relaxed);
        match left {
            0 => None,
            1 => Some(Stop::Deadline),
            _ => {
                self.patience.store(left - 1, Ordering::Relaxed);
                None
            }
        }
    }

    fn scanned(&self, rows: u64) {
        self.scanned.fetch_add(rows, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Lines {
    columns: Vec<ResultColumn>,
    rows: Vec<String>,
}

impl Sink for Lines {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), Error> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| match cell {
                Cell::Null => "NULL".to_owned(),
                Cell::Integer(value) => value.to_string(),
                Cell::Real(value) => format!("{value:?}"),
                Cell::Text(text) => text.clone().into_owned(),
            })
            .collect();
        self.rows.push(cells.join("|"));
        Ok(())
    }
}

fn things(count: usize) -> Things {
    let column = |name: &'static str, kind, is_hidden| Column { name: Cow::Borrowed(name), kind, is_hidden };
    let columns = vec![
        column("as_of", ColumnType::Text, true),
        column("namespace", ColumnType::Text, false),
        column("name", ColumnType::Text, false),
        column("node", ColumnType::Text, false),
        column("size", ColumnType::Integer, false),
        column("twice", ColumnType::Integer, true),
    ];
    let rows = (0..count).map(|at| Thing {
        namespace: format!("n{}", at % 3),
        name: format!("t{at}"),
        node: (at % 5 != 0).then(|| format!("t{}", at / 2)),
        size: at as i64 + if at == 13 { 1000 } else { 0 },
    });
    Things { columns, rows: Arc::new(rows.collect()) }
}

fn ask_of(table: Things, text: &str, parameters: Vec<Cell<'_>>) -> (Result<Summary, Error>, Lines, u64) {
    let catalog: Arc<dyn Catalog> = Arc::new(Tables(table));
    let counted = Arc::new(Counted::default());
    let watch: Arc<dyn Watch> = counted.clone();
    let now = "2026-11-22T10:00:00Z".parse::<Timestamp>().unwrap();
    let mut lines = Lines::default();
    let done = run(&catalog, &Statement { text, parameters, now }, &watch, &mut lines);
    (done, lines, counted.scanned.load(Ordering::Relaxed))
}

fn ask(text: &str) -> Vec<String> {
    let (done, lines, _) = ask_of(things(100), text, Vec::new());
    done.unwrap_or_else(|error| panic!("{text}: {error}"));
    lines.rows
}

fn refused(text: &str) -> String {
    let (done, lines, _) = ask_of(things(100), text, Vec::new());
    assert!(lines.rows.is_empty(), "{text}: {:?}", lines.rows);
    done.expect_err(text).to_string()
}

#[test]
fn rows_columns_and_types() {
    let (done, lines, _) = ask_of(things(3), "SELECT *, size / 2.0 AS half, twice FROM things", Vec::new());
    assert_eq!(done.unwrap().rows, 3);
    let columns: Vec<String> = lines.columns.iter().map(|one| format!("{} {}", one.name, one.kind)).collect();
    let expected = ["namespace TEXT", "name TEXT", "node TEXT", "size INTEGER", "half REAL", "twice INTEGER"];
    assert_eq!(columns, expected);
    assert_eq!(lines.rows, ["n0|t0|NULL|0|0.0|0", "n1|t1|t0|1|0.5|2", "n2|t2|t1|2|1.0|4"]);
    assert_eq!(ask("SELECT count(*) FROM \"things.example.com\""), ["100"]);
    assert_eq!(ask("SELECT count(*) FROM large"), ["10"]);
    assert_eq!(
        ask("SELECT name FROM things('2026-11-22T10:00:00Z') WHERE as_of LIKE '2026%' LIMIT 1"),
        ["t0"]
    );
    let (done, lines, _) =
        ask_of(things(9), "SELECT name FROM things WHERE size = ?1", vec![Cell::Integer(7)]);
    assert_eq!((done.unwrap().rows, lines.rows), (1, vec!["t7".to_owned()]));
}

#[test]
fn functions() {
    assert_eq!(
        ask("SELECT ago('15m'), age('2026-11-22T09:00:00Z'), age('?'), quantity('1500m'), quantity('x')"),
        ["2026-11-22T09:45:00Z|3600|NULL|1.5|NULL"]
    );
    assert_eq!(ask("SELECT shout('a'), json_extract('{\"a\":1}', '$.a'), '{\"a\":2}' ->> 'a'"), ["a!|1|2"]);
    assert_eq!(refused("SELECT shout(1)"), "shout() takes a text");
    assert!(refused("SELECT ago('soon')").contains("is not a length of time"));
}

/// Joins by a hash index and by a comparison of all pairs, which find the same.
#[test]
fn joins_read_each_table_once() {
    let text = "SELECT count(*) FROM things a JOIN things b ON b.name = a.node";
    let (done, lines, scanned) = ask_of(things(2_000), text, Vec::new());
    done.unwrap();
    assert_eq!(lines.rows, ["1600"]);
    assert!(scanned < 10_000, "{scanned} rows were read");
    let pairs = "SELECT count(*) FROM things a, things b WHERE b.name || '' = a.node || ''";
    assert_eq!(ask_of(things(200), pairs, Vec::new()).1.rows, ["160"]);
    let names: Vec<String> = (0..1_000).map(|at| format!("'t{}'", at * 3)).collect();
    let text = format!("SELECT count(*) FROM things WHERE name IN ({})", names.join(","));
    let (done, lines, scanned) = ask_of(things(2_000), &text, Vec::new());
    done.unwrap();
    assert_eq!(lines.rows, ["667"]);
    assert!(scanned < 10_000, "{scanned} rows were read");
}

/// A hash index finds what SQLite finds equal, whatever the types on both sides are.
#[test]
fn values_of_several_types_are_compared_as_sqlite_does() {
    let nodes: Vec<Option<String>> = things(100).rows.iter().map(|thing| thing.node.clone()).collect();
    let pairs = |is_equal: fn(&Option<String>, &Option<String>) -> bool| {
        let count = nodes.iter().flat_map(|a| nodes.iter().filter(move |b| is_equal(a, b))).count();
        count.to_string()
    };
    for (condition, count) in [
        ("a.size = '5' AND b.size = 0", "1".to_owned()),
        ("a.size = 5.0 AND b.size = 0", "1".to_owned()),
        ("a.size = b.size", "100".to_owned()),
        ("a.size = substr(b.name, 2)", "99".to_owned()),
        ("a.size = substr(b.name, 2) + 0.0", "99".to_owned()),
        ("a.size = '0' || substr(b.name, 2)", "99".to_owned()),
        ("a.name = 't' || b.size", "99".to_owned()),
        ("a.name = upper(b.name) COLLATE NOCASE", "100".to_owned()),
        ("a.node IS b.node", pairs(|a, b| a == b)),
        ("a.node = b.node", pairs(|a, b| a.is_some() && a == b)),
        ("(a.namespace, a.name) = (b.namespace, b.name)", "100".to_owned()),
        ("a.name IN (SELECT node FROM things) AND a.size = b.size", "50".to_owned()),
    ] {
        let text = format!("SELECT count(*) FROM things a, things b WHERE {condition}");
        assert_eq!(ask(&text), [count], "{condition}");
    }
}

#[test]
fn nothing_but_select() {
    for text in [
        "INSERT INTO things VALUES (1)",
        "DELETE FROM things",
        "UPDATE things SET size = 1",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "DROP VIEW large",
        "ATTACH ':memory:' AS a",
        "ATTACH '/tmp/rowplane-sql-attached' AS a",
        "PRAGMA database_list",
        "PRAGMA writable_schema = 1",
        "VACUUM",
        "VACUUM INTO '/tmp/rowplane-sql-vacuumed'",
        "ANALYZE",
        "REINDEX",
        "BEGIN",
        "SAVEPOINT a",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/rowplane-sql-written', 'x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT sqlite_version()",
        "SELECT randomblob(1000000000)",
        "SELECT zeroblob(1000000000)",
        "SELECT * FROM sqlite_master",
        "SELECT count(*) FROM sqlite_master",
        "SELECT count(*) FROM sqlite_schema",
        "SELECT * FROM pragma_database_list",
        "SELECT count(*) FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('things')",
        "SELECT * FROM dbstat",
        "SELECT count(*) FROM dbstat",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
    ] {
        refused(text);
    }
    for name in ["attached", "vacuumed", "written"] {
        assert!(!std::path::Path::new(&format!("/tmp/rowplane-sql-{name}")).exists(), "{name}");
    }
    assert_eq!(refused("DELETE FROM things WHERE 1"), "table things may not be modified");
}

#[test]
fn faults_have_a_place_and_a_suggestion() {
    let (done, ..) = ask_of(things(3), "SELECT nam FROM things", Vec::new());
    let Err(Error::Statement { message, offset }) = done else { panic!("{done:?}") };
    assert_eq!((&*message, offset), ("no such column: nam (did you mean name?)", Some(7)));
    assert_eq!(refused("SELECT 1 FROM thingz"), "no such table: thingz (did you mean things?)");
    assert!(refused("SELEC 1").contains("syntax error"));
    let (done, ..) = ask_of(things(3), "SELECT ?1", Vec::new());
    assert!(done.unwrap_err().to_string().contains("1 parameters, and 0 were given"));
}

#[test]
fn endless_statements_end_and_errors_of_tables_stay_themselves() {
    let catalog: Arc<dyn Catalog> = Arc::new(Tables(things(1_000)));
    let now = Timestamp::UNIX_EPOCH;
    for text in [
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
        "SELECT count(*) FROM things a, things b, things c, things d",
    ] {
        let watch: Arc<dyn Watch> = Arc::new(Counted { patience: AtomicU64::new(50), ..Counted::default() });
        let statement = Statement { text, parameters: Vec::new(), now };
        let done = run(&catalog, &statement, &watch, &mut Lines::default());
        assert!(matches!(done, Err(Error::Stopped(Stop::Deadline))), "{done:?}");
    }
    let mut broken = things(3);
    broken.rows = Arc::new(broken.rows.iter().map(|thing| Thing { size: 13, ..thing.clone() }).collect());
    let (done, ..) = ask_of(broken, "SELECT size FROM things", Vec::new());
    assert!(matches!(done, Err(Error::Table(error)) if error.to_string() == "thirteen"));
}
