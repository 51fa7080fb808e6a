//! A results folder: whole, readable, and the same as what was measured.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of tests may fail as loudly as the tests"
)]

use std::fs::{self, File};
use std::path::Path;

use arrow_array::RecordBatch;
use headstart_scenario::{
    CaseKind, Direction, Ground, Machine, PacketRow, ResultsDocument, Run, SCHEMA, Scenario,
    TransferRecord, WindowRow, cells_of, write_results,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn scenario() -> Scenario {
    let text = "name = \"t\" # a comment that is kept\n[path]\nrate = \"1mbit\"\nrtt = \"10ms\"\n\
                queue = \"drop-tail:5\"\n[compare]\nstartups = [\"cubic\"]\nrepeat = 1\n\
                [[case]]\nkind = \"new-cold\"\nbytes = 1000\n";
    Scenario::parse("t.toml", text).unwrap()
}

fn transfers() -> Vec<TransferRecord> {
    let native = TransferRecord {
        startup: "cubic".to_owned(),
        on: Ground::Kernel,
        path: Some("lan".to_owned()),
        case: CaseKind::NewCold,
        repeat: 0,
        order: 1,
        lane: 2,
        bytes: 1000,
        fct_ms: 30.0,
        connect_ms: 10.0,
        limit_ms: 28.0,
        retransmitted_pkts: 1,
        router_drops: 2,
        exit_why: None,
        exit_cwnd_pkts: None,
        valid: true,
        invalid_reason: None,
    };
    let ours = TransferRecord {
        startup: "su_fast_start".to_owned(),
        order: 0,
        fct_ms: 28.5,
        exit_why: Some("round_done".to_owned()),
        exit_cwnd_pkts: Some(35),
        ..native.clone()
    };
    vec![native, ours]
}

fn packet() -> PacketRow {
    PacketRow {
        startup: "su_fast_start".to_owned(),
        on: Ground::Kernel,
        path: Some("lan".to_owned()),
        case: CaseKind::NewCold,
        bytes: 1000,
        repeat: 0,
        t_ms: 5.25,
        direction: Direction::Data,
        from_byte: 0,
        to_byte: 1000,
        low_priority: true,
        retransmission: false,
        dropped: true,
    }
}

fn window() -> WindowRow {
    WindowRow {
        startup: "su_fast_start".to_owned(),
        on: Ground::Kernel,
        path: Some("lan".to_owned()),
        case: CaseKind::NewCold,
        bytes: 1000,
        repeat: 0,
        t_ms: 5.25,
        cwnd_pkts: 35,
        ssthresh_pkts: None,
        srtt_ms: 10.5,
        inflight_pkts: 1,
    }
}

fn document() -> ResultsDocument {
    ResultsDocument {
        schema: SCHEMA,
        verb: "compare".to_owned(),
        scenario: "t".to_owned(),
        seed: 1,
        started: Some("2026-01-02T03:04:05Z".to_owned()),
        machine: Machine {
            kernel: "6.18.44".to_owned(),
            cpus: 2,
        },
        cells: cells_of(&transfers()),
        traffic: Vec::new(),
        links: Vec::new(),
        run: Run {
            wall_s: 1.5,
            packets: 10,
            events: 30,
        },
        warnings: vec!["bbr is not in this kernel and was left out".to_owned()],
    }
}

fn write(dir: &Path) {
    write_results(
        dir,
        &document(),
        &scenario(),
        &transfers(),
        &[packet()],
        &[window()],
    )
    .unwrap();
}

fn rows_of(path: &Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    builder.build().unwrap().next().unwrap().unwrap()
}

/// The columns of a file: name, type, and `?` where nulls are allowed.
fn columns_of(path: &Path) -> Vec<String> {
    let schema = rows_of(path).schema();
    let fields = schema.fields().iter().map(|field| {
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{}: {}{null}", field.name(), field.data_type())
    });
    fields.collect()
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

const FILES: [&str; 5] = [
    "packets.parquet",
    "results.json",
    "scenario.toml",
    "transfers.parquet",
    "windows.parquet",
];

#[test]
fn a_results_folder_holds_five_files_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let new_folder = dir.path().join("a/b");
    write(&new_folder);
    assert_eq!(names_in(&new_folder), FILES);
    write(&new_folder);
    assert_eq!(names_in(&new_folder), FILES, "written a second time");
}

#[test]
fn the_files_can_be_read_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let beside = dir.path().join("beside");
    File::create(&beside).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    for name in FILES {
        assert_eq!(mode(&dir.path().join(name)), mode(&beside), "{name}");
    }
}

#[test]
fn the_document_comes_back_as_it_was_and_the_scenario_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let json = fs::read_to_string(dir.path().join("results.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<ResultsDocument>(&json).unwrap(),
        document()
    );
    let toml = fs::read_to_string(dir.path().join("scenario.toml")).unwrap();
    assert_eq!(toml, scenario().source());
}

#[test]
fn the_document_has_the_shape_that_is_documented() {
    let json = serde_json::to_string_pretty(&document()).unwrap();
    insta::assert_snapshot!(json);
}

#[test]
fn every_field_of_the_document_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results-schema.md");
    let page = fs::read_to_string(page).unwrap();
    let document = serde_json::to_value(document()).unwrap();
    let ours = &document["cells"][1];
    let places = [
        ("", &document),
        ("machine.", &document["machine"]),
        ("run.", &document["run"]),
        ("", ours),
        ("exit.", &ours["exit"]),
    ];
    for (prefix, object) in places {
        for key in object.as_object().unwrap().keys() {
            if !["machine", "run", "exit"].contains(&key.as_str()) {
                let row = format!("| `{prefix}{key}` |");
                assert!(page.contains(&row), "{row} is not in the page");
            }
        }
    }
}

#[test]
fn the_parquet_files_have_the_columns_that_are_documented() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let files = ["transfers.parquet", "packets.parquet", "windows.parquet"];
    let described = files.map(|name| {
        format!(
            "{name}\n  {}",
            columns_of(&dir.path().join(name)).join("\n  ")
        )
    });
    let described = described.join("\n");
    insta::assert_snapshot!(described);
    let transfers = rows_of(&dir.path().join("transfers.parquet"));
    assert_eq!(transfers.num_rows(), 2);
    let packets = rows_of(&dir.path().join("packets.parquet"));
    insta::assert_debug_snapshot!(packets.columns());
}

#[test]
fn a_run_without_packets_has_empty_files_with_all_columns() {
    let dir = tempfile::tempdir().unwrap();
    write_results(dir.path(), &document(), &scenario(), &[], &[], &[]).unwrap();
    let file = File::open(dir.path().join("packets.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(builder.schema().fields().len(), 13);
    assert_eq!(builder.metadata().file_metadata().num_rows(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    File::create(&file).unwrap();
    let error = write_results(&file, &document(), &scenario(), &[], &[], &[]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("a-file: the results folder cannot be created: "),
        "{text}"
    );

    fs::create_dir(dir.path().join("windows.parquet")).unwrap();
    let error = write_results(dir.path(), &document(), &scenario(), &[], &[], &[]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("windows.parquet: cannot be written: "),
        "{text}"
    );
    assert!(
        !dir.path().join("results.json").exists(),
        "no document beside missing data"
    );
    let left = names_in(dir.path());
    assert!(
        !left.iter().any(|name| name.ends_with(".partial")),
        "{left:?}"
    );
}
