//! Closed files and the bucket: against a real server of the S3 protocol on loopback, which is there, not there, slow,
//! or refuses.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use headstart_daemon::{BucketConfig, Store, Uploads};
use support::s3::{BUCKET, Server, nobody, program};
use support::{S, WALL_US, config, eventually, files, row};

fn bucket(at: SocketAddr) -> BucketConfig {
    let options = [
        ("endpoint", format!("http://{at}")),
        ("allow_http", "true".to_owned()),
        ("region", "eu-central-1".to_owned()),
        ("aws_access_key_id", "somebody".to_owned()),
        ("aws_secret_access_key", "nothing".to_owned()),
    ];
    BucketConfig {
        url: format!("s3://{BUCKET}/headstart"),
        options: BTreeMap::from(options.map(|(name, value)| (name.to_owned(), value))),
        keep: false,
        backlog_bytes: 1 << 30,
    }
}

/// Closes `number` files of 10 rows each, and says what is in them.
fn close_files(dir: &Path, number: u32) -> BTreeMap<String, Vec<u8>> {
    let (mut store, _) = Store::open(config(dir)).unwrap();
    for file in 0..number {
        store.take((0..10).map(|place| row(10 * file + place)));
        // Each a second later than the one before.
        store
            .flush(S, WALL_US + i64::from(file) * 1_000_000)
            .unwrap();
        store.close().unwrap();
    }
    contents(dir)
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let named = files(dir, "parquet").into_iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    });
    named.collect()
}

fn in_bucket(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let names = server.objects().into_iter();
    names
        .map(|name| {
            let content = server.object(&name);
            let name = name.strip_prefix("headstart/web-1/").unwrap();
            (name.to_owned(), content)
        })
        .collect()
}

#[test]
fn closed_files_go_to_the_bucket_and_are_removed_when_it_has_confirmed_them() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut wanted = close_files(dir.path(), 3);
    // One that goes in parts: two whole ones and a piece.
    let large: Vec<u8> = (0..12_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    fs::write(dir.path().join("transfers-large.parquet"), &large).unwrap();
    wanted.insert("transfers-large.parquet".to_owned(), large);
    // What is not closed is none of its business.
    fs::write(dir.path().join("transfers-x.spool"), "open").unwrap();

    let server = Server::start(&program, nobody(), false);
    let uploads = Uploads::start(dir.path(), &bucket(server.at), "web-1").unwrap();
    assert!(
        eventually(|| uploads.status().uploaded_files == 4),
        "{:?}",
        uploads.status()
    );
    assert!(in_bucket(&server) == wanted, "{:?}", server.objects());
    assert!(files(dir.path(), "parquet").is_empty());
    assert_eq!(files(dir.path(), "spool").len(), 1);
    let length: usize = wanted.values().map(Vec::len).sum();
    assert_eq!(uploads.status().uploaded_bytes, length as u64);
    // One that is closed later goes as well.
    close_files(dir.path(), 1);
    assert!(eventually(|| uploads.status().uploaded_files == 5));
    assert_eq!(uploads.status().error, None);
}

#[test]
fn uploaded_files_stay_where_that_is_asked_for() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let wanted = close_files(dir.path(), 2);
    let server = Server::start(&program, nobody(), false);
    let config = BucketConfig {
        keep: true,
        ..bucket(server.at)
    };
    let uploads = Uploads::start(dir.path(), &config, "web-1").unwrap();
    assert!(eventually(|| uploads.status().uploaded_files == 2));
    drop(uploads);
    assert!(contents(&dir.path().join("uploaded")) == wanted);
    assert!(in_bucket(&server) == wanted);
}

#[test]
fn a_bucket_that_is_gone_gets_everything_when_it_comes() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let wanted = close_files(dir.path(), 3);
    let at = nobody();
    let uploads = Uploads::start(dir.path(), &bucket(at), "web-1").unwrap();
    assert!(eventually(|| uploads.status().failures > 0));
    let status = uploads.status();
    assert!(
        status
            .error
            .unwrap()
            .contains("closed files wait and are tried again")
    );
    assert_eq!((status.waiting_files, status.uploaded_files), (3, 0));
    let length: usize = wanted.values().map(Vec::len).sum();
    assert_eq!(status.waiting_bytes, length as u64);
    assert_eq!(contents(dir.path()), wanted);

    let server = Server::start(&program, at, false);
    assert!(
        eventually(|| uploads.status().uploaded_files == 3),
        "{:?}",
        uploads.status()
    );
    assert!(in_bucket(&server) == wanted);
    let status = uploads.status();
    assert_eq!(
        (status.waiting_files, status.waiting_bytes, status.error),
        (0, 0, None)
    );
}

#[test]
fn what_waited_at_the_end_is_uploaded_after_the_next_start() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let wanted = close_files(dir.path(), 2);
    let at = nobody();
    let uploads = Uploads::start(dir.path(), &bucket(at), "web-1").unwrap();
    assert!(eventually(|| uploads.status().failures > 0));
    drop(uploads);
    assert_eq!(contents(dir.path()), wanted);
    let server = Server::start(&program, at, false);
    let uploads = Uploads::start(dir.path(), &bucket(at), "web-1").unwrap();
    assert!(eventually(|| uploads.status().uploaded_files == 2));
    assert!(in_bucket(&server) == wanted);
}

/// Killed between the bucket's answer and the removal.
#[test]
fn a_file_that_is_in_the_bucket_already_is_put_again_and_is_there_once() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let wanted = close_files(dir.path(), 1);
    let server = Server::start(&program, nobody(), false);
    for _ in 0..2 {
        for (name, content) in &wanted {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let uploads = Uploads::start(dir.path(), &bucket(server.at), "web-1").unwrap();
        assert!(eventually(|| uploads.status().uploaded_files == 1));
    }
    assert!(in_bucket(&server) == wanted);
}

#[test]
fn a_bucket_that_refuses_is_told_and_the_files_stay() {
    let Some(program) = program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let wanted = close_files(dir.path(), 2);
    let server = Server::start(&program, nobody(), true);
    let uploads = Uploads::start(dir.path(), &bucket(server.at), "web-1").unwrap();
    assert!(eventually(|| uploads.status().failures > 0));
    let error = uploads.status().error.unwrap();
    assert!(
        error.contains("403") || error.contains("InvalidAccessKeyId"),
        "{error}"
    );
    assert!(!error.contains("nothing"), "no secret is told: {error}");
    drop(uploads);
    assert_eq!(contents(dir.path()), wanted);

    let server = Server::start(&program, nobody(), false);
    let elsewhere = BucketConfig {
        url: "s3://not-there/headstart".to_owned(),
        ..bucket(server.at)
    };
    let uploads = Uploads::start(dir.path(), &elsewhere, "web-1").unwrap();
    assert!(eventually(|| uploads.status().failures > 0));
    assert_eq!(contents(dir.path()), wanted);
    assert_eq!(server.make("not-there"), 200);
    assert!(
        eventually(|| uploads.status().uploaded_files == 2),
        "{:?}",
        uploads.status()
    );
}

#[test]
fn what_the_backlog_has_no_room_for_is_dropped_oldest_first_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let before = close_files(dir.path(), 5);
    let lengths: Vec<u64> = before.values().map(|file| file.len() as u64).collect();
    let config = BucketConfig {
        backlog_bytes: lengths[3] + lengths[4],
        ..bucket(nobody())
    };
    let uploads = Uploads::start(dir.path(), &config, "web-1").unwrap();
    assert!(eventually(|| uploads.status().dropped_files == 3));
    let status = uploads.status();
    assert_eq!(status.dropped_rows, 30);
    let newest: Vec<_> = before.into_iter().skip(3).collect();
    assert_eq!(contents(dir.path()).into_iter().collect::<Vec<_>>(), newest);
}

/// It takes the connection, and says nothing for as long as the test runs.
#[test]
fn a_bucket_that_does_not_answer_holds_neither_the_records_nor_the_end_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let uploads =
        Uploads::start(dir.path(), &bucket(silent.local_addr().unwrap()), "web-1").unwrap();
    let written = close_files(dir.path(), 2);
    let _asked = silent.accept().unwrap();
    let more = close_files(dir.path(), 2);
    assert_eq!(more.len(), 4, "two more while the first is under way");
    drop(uploads);
    assert!(
        written
            .keys()
            .all(|name| contents(dir.path()).contains_key(name))
    );
}
