//! Classifies failed requests: retry, or a readable error.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use tilefs_base::error::{Error, Locate};
use tilefs_storage::{Provider, StoreKey};

use super::traffic::ServerAnswer;
use crate::uri::BucketName;

/// A failed attempt.
#[derive(Debug)]
pub struct RequestFailure {
    pub kind: FailureKind,
    answer: ServerAnswer,
    /// The cause below HTTP.
    cause: Option<String>,
}

/// The class of a failure, which decides how to react.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    /// A retry may succeed: the store is busy, or the connection was lost.
    Transient,
    /// No connection could be made. A retry may succeed if the bucket has answered before.
    Unreachable,
    /// The credentials have expired.
    Expired,
    /// No credentials were found.
    NoCredentials,
    /// Access is denied.
    Denied,
    /// The bucket is in another region, which the store may have named.
    OtherRegion(Option<String>),
    NoBucket,
    NoObject,
    /// The client library rejects the name: it has control characters or empty parts.
    Unnameable,
    /// The object is not the one that was listed.
    Changed,
    /// The object ends before the requested range.
    PastEnd,
    /// Any other permanent failure.
    Refused,
}

impl RequestFailure {
    /// Classifies the error of an attempt.
    pub fn of(error: &object_store::Error, answer: ServerAnswer) -> Self {
        RequestFailure { kind: kind_of(error, &answer), cause: cause_of(error), answer }
    }

    /// A transient failure: an incomplete answer, or a timeout.
    pub fn transient(cause: impl Into<String>) -> Self {
        RequestFailure { kind: FailureKind::Transient, answer: ServerAnswer::default(), cause: Some(cause.into()) }
    }

    /// A listing contains an unusable key that is part of the array itself.
    pub fn unnameable(key: &str) -> Self {
        let cause = Some(format!("{key:?}"));
        RequestFailure { kind: FailureKind::Unnameable, answer: ServerAnswer::default(), cause }
    }

    /// The answer is of another object than the one that was listed.
    pub fn changed() -> Self {
        RequestFailure { kind: FailureKind::Changed, answer: ServerAnswer::default(), cause: None }
    }

    /// Summarizes in a few words: `503 SlowDown`.
    pub fn summary(&self) -> String {
        // A success status says nothing about why the answer broke off.
        let is_error = |status: &u16| !(200..300).contains(status);
        match (self.answer.status.filter(is_error), &self.answer.code, &self.cause) {
            (Some(status), Some(code), _) => format!("{status} {code}"),
            (Some(status), None, _) => status.to_string(),
            (None, _, Some(cause)) => cause.clone(),
            (None, _, None) => "no answer".to_owned(),
        }
    }

    /// Returns the final error after `attempts` that took `took` in total, at the operation `what` on `key`.
    pub fn error(
        &self,
        bucket: &BucketName,
        key: &StoreKey,
        what: &dyn Display,
        attempts: u32,
        took: Duration,
    ) -> Error {
        let summary = self.summary();
        let io = |kind: io::ErrorKind, text: String| Error::io(io::Error::new(kind, text));
        let denied = |text: String| io(io::ErrorKind::PermissionDenied, text);
        let tried = match attempts {
            1 => String::new(),
            attempts => format!(", tried {attempts} times in {:.1} s", took.as_secs_f64()),
        };
        let error = match &self.kind {
            FailureKind::Transient => io(io::ErrorKind::TimedOut, format!("{what}: {summary}{tried}")),
            FailureKind::Unreachable => io(
                io::ErrorKind::NotConnected,
                format!("{bucket} cannot be reached: {summary}{tried}; check the network and the endpoint"),
            ),
            FailureKind::Expired => {
                denied(format!("the credentials for {bucket} have expired ({summary}); renew them"))
            }
            FailureKind::NoCredentials => denied(format!(
                "there are no credentials for {bucket} ({summary}); {}, or read a public bucket with --anonymous",
                how_to_sign(bucket.provider)
            ))
            .permanent(),
            FailureKind::Denied => denied(format!(
                "{bucket} may not be read with these credentials ({summary}): check them and the bucket's policy, or \
                 read a public bucket with --anonymous"
            ))
            .permanent(),
            FailureKind::OtherRegion(region) => {
                io(io::ErrorKind::InvalidInput, in_other_region(bucket, region.as_deref(), &summary)).permanent()
            }
            FailureKind::NoBucket => Error::missing(format!(
                "there is no {} {} ({summary}): check the name and the endpoint",
                if bucket.provider == Provider::Azure { "container" } else { "bucket" },
                bucket.bucket
            )),
            FailureKind::NoObject => Error::missing("there is no such object"),
            FailureKind::Unnameable => Error::unsupported(format!(
                "a name with characters that cannot be asked for in an object store ({summary}); a local copy can be \
                 read"
            )),
            FailureKind::Changed => {
                let text = format!("{what}: changed since the mount, it is another object now");
                io(io::ErrorKind::Other, text).permanent()
            }
            FailureKind::PastEnd => Error::damaged(format!("{what}: the object ends before")),
            FailureKind::Refused => io(io::ErrorKind::Other, format!("{what}: {summary}{tried}")).permanent(),
        };
        error.in_file(key)
    }
}

fn in_other_region(bucket: &BucketName, region: Option<&str>, summary: &str) -> String {
    match region {
        Some(region) => format!("{bucket} is in the region {region}: set -o vfs.s3.region={region}"),
        None => format!("{bucket} is in another region ({summary}): set -o vfs.s3.region=REGION"),
    }
}

fn how_to_sign(provider: Provider) -> &'static str {
    match provider {
        Provider::S3 => "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        Provider::Gcs => "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
        Provider::Azure => "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    }
}

fn kind_of(error: &object_store::Error, answer: &ServerAnswer) -> FailureKind {
    let code = answer.code.as_deref().unwrap_or_default();
    if let object_store::Error::InvalidPath { .. } = error {
        return FailureKind::Unnameable;
    }
    let Some(status) = answer.status else {
        return match (answer.was_sent, http_kind(error)) {
            (false, _) => FailureKind::NoCredentials,
            (true, Some(HttpErrorKind::Connect)) => FailureKind::Unreachable,
            // Including errors that no library classifies: connections break in many ways.
            (true, _) => FailureKind::Transient,
        };
    };
    match (status, code) {
        (400 | 401 | 403, "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" | "TokenRefreshRequired") => {
            FailureKind::Expired
        }
        (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") | (301 | 307 | 308, _) => {
            FailureKind::OtherRegion(answer.region.clone())
        }
        (400, "RequestTimeout") | (408 | 429 | 500.., _) | (403, "SlowDown") => FailureKind::Transient,
        (404, "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted") => FailureKind::NoBucket,
        (404, _) => FailureKind::NoObject,
        (401 | 403, _) => FailureKind::Denied,
        (412, _) => FailureKind::Changed,
        (416, _) => FailureKind::PastEnd,
        // The answer began well but broke off.
        (200..=299, _) => FailureKind::Transient,
        _ => FailureKind::Refused,
    }
}

/// Returns the innermost HTTP error kind in the chain.
fn http_kind(error: &object_store::Error) -> Option<HttpErrorKind> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some(http.kind());
        }
        source = error.source();
    }
    None
}

/// Returns the innermost error's message: outer ones repeat it, and may contain secret addresses.
fn cause_of(error: &object_store::Error) -> Option<String> {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    (!text.contains("://")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, code: &str) -> FailureKind {
        let error = object_store::Error::NotImplemented { operation: String::new(), implementer: String::new() };
        let code = (!code.is_empty()).then(|| code.to_owned());
        let region = Some("eu-west-1".to_owned());
        kind_of(&error, &ServerAnswer { status: Some(status), code, region, was_sent: true, ..ServerAnswer::default() })
    }

    #[test]
    fn unusable_names_are_reported() {
        let error = object_store::Error::from(object_store::path::Path::parse("a/tab\tname").unwrap_err());
        let answer = ServerAnswer { status: Some(200), was_sent: true, ..ServerAnswer::default() };
        assert_eq!(kind_of(&error, &answer), FailureKind::Unnameable);
    }

    #[test]
    fn transient_failures_are_told_from_permanent_ones() {
        for (status, code) in [(503, "SlowDown"), (500, "InternalError"), (429, ""), (400, "RequestTimeout"), (206, "")]
        {
            assert_eq!(kind(status, code), FailureKind::Transient, "{status} {code}");
        }
        assert_eq!(kind(403, "AccessDenied"), FailureKind::Denied);
        assert_eq!(kind(403, "ExpiredToken"), FailureKind::Expired);
        assert_eq!(kind(301, "PermanentRedirect"), FailureKind::OtherRegion(Some("eu-west-1".into())));
        assert_eq!(kind(404, "NoSuchBucket"), FailureKind::NoBucket);
        assert_eq!(kind(404, "NoSuchKey"), FailureKind::NoObject);
        assert_eq!(kind(412, "PreconditionFailed"), FailureKind::Changed);
        assert_eq!(kind(400, "InvalidRequest"), FailureKind::Refused);
    }
}
