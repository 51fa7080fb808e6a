//! The bucket: which store a URL names, and how one closed file is put there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path as ObjectPath;
use object_store::{
    MultipartUpload, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload, RetryConfig,
};
use url::Url;

use crate::config::BucketConfig;

/// A larger file goes in parts of this size: the least that S3 takes for a part but the last, and all of a file that is
/// in memory at a time.
const PART_BYTES: usize = 5 << 20;
/// Of one request, by the client itself. What lasts longer is the uploads' own back-off.
const RETRIES: RetryConfig = RetryConfig {
    backoff: object_store::BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    },
    max_retries: 2,
    retry_timeout: Duration::from_secs(60),
};
/// A store's error may carry its whole answer.
const MOST_CAUSE_CHARS: usize = 300;

/// Why a file is not in the bucket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BucketError {
    /// The URL names no bucket that can be written to.
    #[error(
        "\"{url}\" names no bucket: {cause}; write \"s3://BUCKET/PREFIX\", \"gs://...\" or \"az://...\""
    )]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong.
        cause: String,
    },
    /// The store would not, or does not answer.
    #[error(
        "{to} cannot be written: {}; closed files wait and are tried again",
        short(cause)
    )]
    Store {
        /// The bucket's URL, or the object's.
        to: String,
        /// What it said.
        cause: object_store::Error,
    },
    /// A closed file cannot be read, or not be removed.
    #[error("{file}: {cause}; closed files wait and are tried again")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
}

fn short(error: &object_store::Error) -> String {
    let mut text: String = error
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((end, _)) = text.char_indices().nth(MOST_CAUSE_CHARS) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

fn scheme(url: &str) -> Result<(ObjectStoreScheme, ObjectPath), BucketError> {
    let bad = |cause: String| BucketError::Url {
        url: url.to_owned(),
        cause,
    };
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err(bad("it has no name".to_owned()));
    }
    let (scheme, prefix) =
        ObjectStoreScheme::parse(&parsed).map_err(|error| bad(error.to_string()))?;
    match scheme {
        ObjectStoreScheme::AmazonS3
        | ObjectStoreScheme::GoogleCloudStorage
        | ObjectStoreScheme::MicrosoftAzure => Ok((scheme, prefix)),
        other => Err(bad(format!("it is {other:?}"))),
    }
}

/// What is wrong with `url`, or with the names of options for a store of its kind.
pub(crate) fn check<'a>(
    url: &str,
    options: impl IntoIterator<Item = &'a String>,
) -> Result<(), String> {
    let (scheme, _) = scheme(url).map_err(|error| error.to_string())?;
    for name in options {
        let known = match scheme {
            ObjectStoreScheme::AmazonS3 => AmazonS3ConfigKey::from_str(name).is_ok(),
            ObjectStoreScheme::GoogleCloudStorage => GoogleConfigKey::from_str(name).is_ok(),
            _ => AzureConfigKey::from_str(name).is_ok(),
        };
        if !known {
            return Err(format!(
                "the option \"{name}\" is not known for {url}; those of the crate object_store are, such as \
                 \"endpoint\", \"region\", \"timeout\""
            ));
        }
    }
    Ok(())
}

/// What the environment says (AWS_*, GOOGLE_*, AZURE_*), then the options of the file, then the URL.
macro_rules! built {
    ($builder:ty, $config:expr) => {{
        let mut builder = <$builder>::from_env();
        for (name, value) in &$config.options {
            // Unknown ones are refused with the configuration.
            if let Ok(key) = name.parse() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder.with_retry(RETRIES).with_url(&$config.url).build();
        store.map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
    }};
}

/// A store, and where in it the files of this machine go.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    url: String,
    folder: ObjectPath,
}

impl Bucket {
    /// Asks nobody yet. The files go below the URL's prefix into a folder of the machine's name, `host`.
    pub(crate) fn open(config: &BucketConfig, host: &str) -> Result<Bucket, BucketError> {
        let (scheme, prefix) = scheme(&config.url)?;
        // Another part of the process may have chosen before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = match scheme {
            ObjectStoreScheme::AmazonS3 => built!(AmazonS3Builder, config),
            ObjectStoreScheme::GoogleCloudStorage => built!(GoogleCloudStorageBuilder, config),
            _ => built!(MicrosoftAzureBuilder, config),
        };
        Ok(Bucket {
            store: store.map_err(|cause| BucketError::Store {
                to: config.url.clone(),
                cause,
            })?,
            url: config.url.clone(),
            folder: prefix.join(host),
        })
    }

    /// Returns when the store has said that it has all of the file. Putting it again changes nothing: a closed file is
    /// never written again, and its name is its own.
    pub(crate) async fn put(&self, file: &Path) -> Result<u64, BucketError> {
        let of_file = |cause| BucketError::File {
            file: file.display().to_string(),
            cause,
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let to = self.folder.clone().join(name.as_ref());
        let of_store = |cause| BucketError::Store {
            to: format!("{} of {}", to, self.url),
            cause,
        };
        let mut open = File::open(file).map_err(of_file)?;
        let first = part(&mut open).map_err(of_file)?;
        if first.len() < PART_BYTES {
            let length = first.len() as u64;
            self.store.put(&to, first.into()).await.map_err(of_store)?;
            return Ok(length);
        }
        let mut upload = self.store.put_multipart(&to).await.map_err(of_store)?;
        let sent = send_parts(upload.as_mut(), first, &mut open).await;
        let done = match sent {
            Ok(length) => upload.complete().await.map(|_| length).map_err(of_store),
            Err(Failed::Store(cause)) => Err(of_store(cause)),
            Err(Failed::File(cause)) => Err(of_file(cause)),
        };
        if done.is_err() {
            // Or the store keeps parts that nobody will ask for. It is said already why the file is not there.
            let _ = upload.abort().await;
        }
        done
    }
}

enum Failed {
    Store(object_store::Error),
    File(io::Error),
}

async fn send_parts(
    upload: &mut dyn MultipartUpload,
    first: Vec<u8>,
    rest: &mut File,
) -> Result<u64, Failed> {
    let mut length = 0;
    let mut next = first;
    while !next.is_empty() {
        length += next.len() as u64;
        let sent = upload.put_part(PutPayload::from(next)).await;
        sent.map_err(Failed::Store)?;
        next = part(rest).map_err(Failed::File)?;
    }
    Ok(length)
}

/// The next part; empty at the end.
fn part(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(PART_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> BucketConfig {
        BucketConfig {
            url: url.to_owned(),
            options: Default::default(),
            keep: false,
            backlog_bytes: 1,
        }
    }

    #[test]
    fn a_url_names_one_of_three_kinds_of_store_or_is_refused_in_words() {
        for url in ["s3://logs", "s3://logs/a/b", "gs://logs/a", "az://logs/a"] {
            assert_eq!(check(url, []), Ok(()), "{url}");
        }
        let refused = [
            ("file:///tmp", "it has no name"),
            ("file://host/tmp", "names no bucket"),
            ("memory://x/y", "names no bucket"),
            ("s3:///x", "it has no name"),
            ("ftp://host/x", "names no bucket"),
            ("logs/a", "relative URL"),
        ];
        for (url, words) in refused {
            let error = check(url, []).unwrap_err();
            assert!(error.contains(words), "{url}: {error}");
        }
    }

    #[test]
    fn options_are_those_of_the_urls_kind_of_store() {
        let names =
            |names: &[&str]| -> Vec<String> { names.iter().map(|n| (*n).to_owned()).collect() };
        let s3 = names(&[
            "region",
            "endpoint",
            "allow_http",
            "aws_access_key_id",
            "timeout",
        ]);
        assert_eq!(check("s3://logs", &s3), Ok(()));
        assert_eq!(check("az://logs", &names(&["account_name"])), Ok(()));
        let error = check("gs://logs", &names(&["aws_access_key_id"])).unwrap_err();
        assert!(error.contains("\"aws_access_key_id\" is not known for gs://logs"));
    }

    #[test]
    fn files_stand_below_the_prefix_in_a_folder_of_the_machine() {
        let bucket = Bucket::open(&config("s3://logs/headstart/2026"), "web-1").unwrap();
        assert_eq!(bucket.folder.as_ref(), "headstart/2026/web-1");
        let bucket = Bucket::open(&config("s3://logs"), "web-1").unwrap();
        assert_eq!(bucket.folder.as_ref(), "web-1");
    }
}
