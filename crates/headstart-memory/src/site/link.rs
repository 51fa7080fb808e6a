//! The connection to the store, and the two things that are asked of it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError, TlsCertificates, Value,
};

/// The layout: another one has other keys.
const KEYS: [&str; 3] = [
    "headstart:1:site",
    "headstart:1:paths",
    "headstart:1:changes",
];
const PULL: &str = include_str!("pull.lua");
const PUSH: &str = include_str!("push.lua");
/// Whoever does not answer for so long is gone. A store in the same site answers in a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that the store keeps, whatever each server has room for.
const MOST_PATHS: u32 = 1_000_000;

/// Where a site's memory is: an address that can be shown, and a password that is not.
#[derive(Clone)]
pub struct SiteUrl {
    info: ConnectionInfo,
    authorities: Option<PathBuf>,
}

/// Why a text is no address of a site's memory.
#[derive(Debug, thiserror::Error)]
#[error("{0}; write redis://[:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS")]
pub struct SiteUrlError(String);

impl SiteUrl {
    /// Reads `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS. `authorities`: a file in PEM
    /// with who may vouch for the server; `None`: the system's.
    ///
    /// # Errors
    /// What is wrong with it; the text does not repeat it, because there may be a password in it.
    pub fn parse(text: &str, authorities: Option<&Path>) -> Result<SiteUrl, SiteUrlError> {
        let info = text
            .into_connection_info()
            .map_err(|error| SiteUrlError(format!("it is no address of a store: {error}")))?;
        match info.addr() {
            ConnectionAddr::Tcp(..) if authorities.is_some() => Err(SiteUrlError(
                "authorities are for TLS, and this address is one without".to_owned(),
            )),
            ConnectionAddr::Tcp(..) | ConnectionAddr::TcpTls { .. } => Ok(SiteUrl {
                info,
                authorities: authorities.map(Path::to_owned),
            }),
            _ => Err(SiteUrlError("it is no address in a network".to_owned())),
        }
    }

    fn client(&self) -> Result<redis::Client, LinkError> {
        let bad = |error: RedisError| LinkError::Refused(error.to_string());
        let ConnectionAddr::TcpTls { .. } = self.info.addr() else {
            return redis::Client::open(self.info.clone()).map_err(bad);
        };
        // The only one that is built in; another part of the program may have chosen it before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Some(file) = &self.authorities else {
            return redis::Client::open(self.info.clone()).map_err(bad);
        };
        let pem = fs::read(file)
            .map_err(|error| LinkError::Refused(format!("{}: {error}", file.display())))?;
        let certificates = TlsCertificates {
            client_tls: None,
            root_cert: Some(pem),
        };
        redis::Client::build_with_tls(self.info.clone(), certificates).map_err(bad)
    }
}

impl fmt::Display for SiteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.info.addr() {
            ConnectionAddr::TcpTls { .. } => "rediss",
            _ => "redis",
        };
        let database = self.info.redis_settings().db();
        write!(f, "{scheme}://{}/{database}", self.info.addr())
    }
}

impl fmt::Debug for SiteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for SiteUrl {
    fn eq(&self, other: &SiteUrl) -> bool {
        let of = |url: &SiteUrl| {
            let settings = url.info.redis_settings();
            let login = (
                settings.username().map(str::to_owned),
                settings.password().map(str::to_owned),
            );
            (url.to_string(), login, url.authorities.clone())
        };
        of(self) == of(other)
    }
}

/// Why the store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    /// It is not there, or does not answer in time.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// It takes no more; it may still be read.
    #[error("it takes nothing more: {0}")]
    Full(String),
    /// It is there, and will not.
    #[error("it refuses: {0}")]
    Refused(String),
}

impl From<RedisError> for LinkError {
    fn from(error: RedisError) -> LinkError {
        let text = error.to_string();
        if error.is_timeout() {
            return LinkError::Unreachable(format!("none within {} s", PATIENCE.as_secs()));
        }
        match error.code() {
            // No memory; no disk for its own copy; a replica.
            Some("OOM" | "MISCONF" | "READONLY") => LinkError::Full(text),
            Some("LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN") => LinkError::Unreachable(text),
            // A script's error has the cause within.
            _ if text.contains("OOM command not allowed") => LinkError::Full(text),
            _ if error.is_io_error() || error.is_connection_dropped() => {
                LinkError::Unreachable(text)
            }
            _ => LinkError::Refused(text),
        }
    }
}

/// What changed.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The store's clock, in us.
    pub(crate) now_us: u64,
    /// Another one: it was emptied. Empty: nothing was ever told.
    pub(crate) epoch: String,
    /// The last change that is in here.
    pub(crate) last: String,
    /// Prefix and text of each, unlooked at.
    pub(crate) entries: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A path to tell.
pub(crate) struct Telling {
    pub(crate) prefix: String,
    pub(crate) age_us: u64,
    pub(crate) forgotten: bool,
    pub(crate) text: String,
}

/// Who tells, and what it knows of the store.
pub(crate) struct Teller<'a> {
    pub(crate) name: &'a str,
    pub(crate) epoch: &'a str,
    /// Should one begin.
    pub(crate) new_epoch: &'a str,
    pub(crate) seen: &'a str,
    pub(crate) lifetime_us: u64,
    pub(crate) slack_us: u64,
}

pub(crate) struct Link {
    connection: redis::Connection,
}

impl Link {
    pub(crate) fn connect(url: &SiteUrl) -> Result<Link, LinkError> {
        let connection = url.client()?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(Link { connection })
    }

    pub(crate) fn pull(
        &mut self,
        epoch: &str,
        after: &str,
        most: usize,
    ) -> Result<Changes, LinkError> {
        let mut script = redis::cmd("EVAL");
        script.arg(PULL).arg(KEYS.len()).arg(&KEYS);
        script.arg(epoch).arg(after).arg(most);
        let answer: Value = script.query(&mut self.connection)?;
        let mut parts = parts(answer)?.into_iter();
        let mut word = || {
            let part = parts.next().ok_or_else(unreadable)?;
            String::from_utf8(part).map_err(|_| unreadable())
        };
        let (now_us, epoch, last) = (word()?, word()?, word()?);
        let mut entries = Vec::new();
        while let (Some(prefix), Some(text)) = (parts.next(), parts.next()) {
            entries.push((prefix, text));
        }
        Ok(Changes {
            now_us: now_us.parse().map_err(|_| unreadable())?,
            epoch,
            last,
            entries,
        })
    }

    /// Returns the store's epoch, and the places in `tellings` of those that another has changed unseen.
    pub(crate) fn push(
        &mut self,
        teller: &Teller<'_>,
        tellings: &[Telling],
    ) -> Result<(String, Vec<usize>), LinkError> {
        let mut script = redis::cmd("EVAL");
        script.arg(PUSH).arg(KEYS.len()).arg(&KEYS);
        script.arg(teller.epoch).arg(teller.new_epoch);
        script.arg(teller.seen).arg(teller.name).arg(MOST_PATHS);
        script.arg(teller.lifetime_us / 1_000_000);
        script.arg(teller.slack_us);
        for telling in tellings {
            script.arg(&telling.prefix).arg(telling.age_us);
            script.arg(u8::from(telling.forgotten)).arg(&telling.text);
        }
        let answer: Value = script.query(&mut self.connection)?;
        let words = parts(answer)?.into_iter().map(String::from_utf8);
        let words: Vec<String> = words.collect::<Result<_, _>>().map_err(|_| unreadable())?;
        let (epoch, places) = words.split_first().ok_or_else(unreadable)?;
        let places = places.iter().map(|place| place.parse::<usize>().ok());
        let places: Option<Vec<usize>> = places.map(|place| place?.checked_sub(1)).collect();
        Ok((epoch.clone(), places.ok_or_else(unreadable)?))
    }
}

fn unreadable() -> LinkError {
    LinkError::Refused("its answer is not of our script".to_owned())
}

fn parts(answer: Value) -> Result<Vec<Vec<u8>>, LinkError> {
    let Value::Array(parts) = answer else {
        return Err(unreadable());
    };
    let bytes = parts.into_iter().map(|part| match part {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unreadable()),
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = SiteUrl::parse("redis://:secret@10.0.0.9:6380/3", None).unwrap();
        assert_eq!(
            format!("{url} {url:?}"),
            "redis://10.0.0.9:6380/3 redis://10.0.0.9:6380/3"
        );
        let url = SiteUrl::parse("rediss://us:secret@store.example", None).unwrap();
        assert_eq!(url.to_string(), "rediss://store.example:6379/0");
    }

    #[test]
    fn another_password_is_another_address() {
        let of = |text| SiteUrl::parse(text, None).unwrap();
        assert_eq!(of("redis://:a@h"), of("redis://:a@h:6379/0"));
        assert_ne!(of("redis://:a@h"), of("redis://:b@h"));
        assert_ne!(of("redis://h"), of("rediss://h"));
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for text in [
            "secret",
            "http://:secret@h",
            "unix:///secret",
            "redis://:secret@h/x",
        ] {
            let error = SiteUrl::parse(text, None).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("redis://"), "{error}");
        }
        let file = Some(Path::new("/ca.pem"));
        let error = SiteUrl::parse("redis://h", file).unwrap_err().to_string();
        assert!(error.contains("TLS"), "{error}");
    }
}
