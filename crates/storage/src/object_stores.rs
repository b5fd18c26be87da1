//! Which URIs name objects in object stores. Nothing else is known of these stores here: a program passes in how they are
//! reached.

use std::fmt;
use std::sync::Arc;

use tilefs_base::error::Result;

use crate::{LocalStorage, Storage};

/// A kind of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Amazon S3, and servers with its interface.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

impl Provider {
    /// Returns the store of a TileDB URI, and the part after the scheme.
    pub fn of_uri(uri: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = uri.split_once("://")?;
        Some((Provider::of_scheme(scheme)?, rest))
    }

    /// Returns the store of a TileDB URI scheme.
    fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Provider::S3),
            "gs" | "gcs" => Some(Provider::Gcs),
            "azure" | "az" | "abfs" | "abfss" => Some(Provider::Azure),
            _ => None,
        }
    }

    /// Returns the canonical scheme, used when keys are compared.
    pub fn scheme(self) -> &'static str {
        match self {
            Provider::S3 => "s3",
            Provider::Gcs => "gs",
            Provider::Azure => "azure",
        }
    }
}

/// Returns whether this is a URI of an object store.
pub fn is_object_uri(text: &str) -> bool {
    Provider::of_uri(text).is_some()
}

/// How a program reaches object stores.
pub trait ObjectStores: fmt::Debug + Send + Sync {
    /// Returns a storage of all object stores. Makes no request.
    ///
    /// # Errors
    /// If the options cannot be used.
    fn alone(&self) -> Result<Arc<dyn Storage>>;

    /// Returns a storage of local folders, and of the object stores to which groups in them may lead.
    fn beside(&self, local: LocalStorage) -> Arc<dyn Storage>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_tell_object_stores() {
        for (uri, is_object) in [
            ("s3://b/a", true),
            ("gs://b/a", true),
            ("gcs://b/a", true),
            ("azure://c/a", true),
            ("az://c/a", true),
            ("abfs://c@me/a", true),
            ("tiledb://a", false),
            ("file:///a", false),
            ("/s3/b", false),
            ("s3:/b", false),
        ] {
            assert_eq!(is_object_uri(uri), is_object, "{uri}");
        }
    }

    #[test]
    fn the_canonical_scheme_is_one_of_the_store() {
        for provider in [Provider::S3, Provider::Gcs, Provider::Azure] {
            assert_eq!(Provider::of_scheme(provider.scheme()), Some(provider));
        }
    }
}
