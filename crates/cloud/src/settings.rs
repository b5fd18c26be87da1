//! Settings for object stores, named like TileDB's own (`vfs.s3.region` ...), from a file that `tiledb.Config().save`
//! writes and from the command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_storage::secret::{read_private, warn_if_open};
use zeroize::Zeroizing;

/// A settings file has a few kilobytes; anything larger than this is something else.
const MOST_FILE: usize = 1 << 20;

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingType {
    Text,
    /// `true` or `false`.
    Flag,
    Number,
    /// Text that nobody else may see.
    Secret,
}

/// The supported settings.
const KNOWN: [(&str, SettingType); 30] = [
    ("vfs.s3.region", SettingType::Text),
    ("vfs.s3.endpoint_override", SettingType::Text),
    ("vfs.s3.scheme", SettingType::Text),
    ("vfs.s3.use_virtual_addressing", SettingType::Flag),
    ("vfs.s3.no_sign_request", SettingType::Flag),
    ("vfs.s3.requester_pays", SettingType::Flag),
    ("vfs.s3.verify_ssl", SettingType::Flag),
    ("vfs.s3.ca_file", SettingType::Text),
    ("vfs.s3.proxy_host", SettingType::Text),
    ("vfs.s3.proxy_port", SettingType::Number),
    ("vfs.s3.proxy_scheme", SettingType::Text),
    ("vfs.s3.proxy_username", SettingType::Text),
    ("vfs.s3.proxy_password", SettingType::Secret),
    ("vfs.s3.connect_timeout_ms", SettingType::Number),
    ("vfs.s3.request_timeout_ms", SettingType::Number),
    ("vfs.s3.max_parallel_ops", SettingType::Number),
    ("vfs.s3.aws_access_key_id", SettingType::Secret),
    ("vfs.s3.aws_secret_access_key", SettingType::Secret),
    ("vfs.s3.aws_session_token", SettingType::Secret),
    ("vfs.gcs.endpoint", SettingType::Text),
    ("vfs.gcs.project_id", SettingType::Text),
    ("vfs.gcs.service_account_key", SettingType::Secret),
    ("vfs.gcs.request_timeout_ms", SettingType::Number),
    ("vfs.gcs.max_parallel_ops", SettingType::Number),
    ("vfs.azure.storage_account_name", SettingType::Text),
    ("vfs.azure.blob_endpoint", SettingType::Text),
    ("vfs.azure.storage_account_key", SettingType::Secret),
    ("vfs.azure.storage_account_sas_token", SettingType::Secret),
    ("vfs.azure.storage_sas_token", SettingType::Secret),
    ("vfs.azure.max_parallel_ops", SettingType::Number),
];

/// Defaults of TileDB 2.30 in a saved file, for settings that tilefs does not have or interprets differently. The
/// default of `max_parallel_ops` is the number of cores.
const DEFAULTS: [(&str, &str); 40] = [
    ("vfs.azure.block_list_block_size", "5242880"),
    ("vfs.azure.is_data_lake_endpoint", ""),
    ("vfs.azure.max_retries", "5"),
    ("vfs.azure.max_retry_delay_ms", "60000"),
    ("vfs.azure.retry_delay_ms", "800"),
    ("vfs.azure.use_block_list_upload", "true"),
    ("vfs.file.posix_directory_permissions", "755"),
    ("vfs.file.posix_file_permissions", "644"),
    ("vfs.gcs.max_direct_upload_size", "10737418240"),
    ("vfs.gcs.multi_part_size", "5242880"),
    ("vfs.gcs.request_timeout_ms", "3000"),
    ("vfs.gcs.use_multi_part_upload", "true"),
    ("vfs.log_operations", "false"),
    ("vfs.max_batch_size", "104857600"),
    ("vfs.min_batch_gap", "512000"),
    ("vfs.min_batch_size", "20971520"),
    ("vfs.min_parallel_size", "10485760"),
    ("vfs.read_ahead_cache_size", "10485760"),
    ("vfs.read_ahead_size", "102400"),
    ("vfs.s3.aws_external_id", ""),
    ("vfs.s3.aws_load_frequency", ""),
    ("vfs.s3.aws_role_arn", ""),
    ("vfs.s3.aws_session_name", ""),
    ("vfs.s3.bucket_canned_acl", "NOT_SET"),
    ("vfs.s3.config_source", "auto"),
    ("vfs.s3.connect_max_tries", "5"),
    ("vfs.s3.connect_scale_factor", "25"),
    ("vfs.s3.connect_timeout_ms", "10800"),
    ("vfs.s3.install_sigpipe_handler", "true"),
    ("vfs.s3.logging_level", "Off"),
    ("vfs.s3.multipart_part_size", "5242880"),
    ("vfs.s3.object_canned_acl", "NOT_SET"),
    ("vfs.s3.proxy_port", "0"),
    ("vfs.s3.proxy_scheme", "http"),
    ("vfs.s3.request_timeout_ms", "3000"),
    ("vfs.s3.skip_init", "false"),
    ("vfs.s3.sse", ""),
    ("vfs.s3.sse_kms_key_id", ""),
    ("vfs.s3.storage_class", "NOT_SET"),
    ("vfs.s3.use_multipart_upload", "true"),
];

/// The number of cores of the machine that saved the file: the value of `max_parallel_ops` unless the user set it.
const CORES: &str = "sm.compute_concurrency_level";

/// Settings by name, each checked for its type. Secrets are zeroed on drop and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, Zeroizing<String>>);

/// Shows only the names.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Settings {
    /// Reads a file with a `name value` pair per line. Warns of unsupported object store settings, unless they have
    /// TileDB's default value, and of a file with keys that others can read. Settings outside `vfs.` configure
    /// libtiledb and are ignored.
    ///
    /// # Errors
    /// If the file cannot be read; [`Error::Usage`] for a value of the wrong type.
    pub fn read(path: &Path) -> Result<Self> {
        let (bytes, mode) = read_private(path, MOST_FILE).map_err(|error| match error {
            Error::Key { .. } => {
                let path = path.display();
                Error::usage(format!("{path} is not a settings file: it has more than {MOST_FILE} bytes"))
            }
            error => error,
        })?;
        let text = str::from_utf8(&bytes)
            .map_err(|_| Error::usage(format!("{} is not a settings file: it is not text", path.display())))?;
        let (settings, unknown) = Settings::parse(text).in_file(path.display())?;
        if !unknown.is_empty() {
            log::warn!("{}: tilefs does not have the settings {}", path.display(), unknown.join(", "));
        }
        warn_if_open(path, mode, settings.has_secrets());
        Ok(settings)
    }

    /// Parses settings; also returns the names of unsupported ones.
    fn parse(text: &str) -> Result<(Self, Vec<&str>)> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pairs: Vec<(&str, &str)> =
            lines.map(|line| line.split_once(char::is_whitespace).map_or((line, ""), |(a, b)| (a, b.trim()))).collect();
        let cores = pairs.iter().find(|(name, _)| *name == CORES).map(|(_, value)| *value);
        let is_default = |name: &str, value: &str| {
            DEFAULTS.contains(&(name, value)) || (name.ends_with(".max_parallel_ops") && Some(value) == cores)
        };
        let (mut settings, mut unknown) = (Settings::default(), Vec::new());
        for (name, value) in pairs {
            if !name.starts_with("vfs.") || value.is_empty() || is_default(name, value) {
                continue;
            }
            match KNOWN.iter().any(|(known, _)| *known == name) {
                true => settings.set(name, value)?,
                false => unknown.push(name),
            }
        }
        Ok((settings, unknown))
    }

    /// Sets a value given on the command line.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unsupported setting, a value of the wrong type, and a secret, because others on this
    /// machine can see the command line.
    pub fn set_typed(&mut self, name: &str, value: &str) -> Result<()> {
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, SettingType::Secret)) => Err(Error::usage(format!(
                "{name} is a secret, and others see the command line; write it to a file for --config, or to the \
                 environment"
            ))),
            Some(_) => self.set(name, value),
            None => Err(unknown(name)),
        }
    }

    /// Sets a value that a program gives, which may be a secret: nobody else sees it.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unsupported setting, and a value of the wrong type.
    pub fn set_in_process(&mut self, name: &str, value: &str) -> Result<()> {
        if KNOWN.iter().any(|(known, _)| *known == name) { self.set(name, value) } else { Err(unknown(name)) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(&(name, kind)) = KNOWN.iter().find(|(known, _)| *known == name) else { return Ok(()) };
        let fits = match kind {
            SettingType::Text | SettingType::Secret => true,
            SettingType::Flag => matches!(value, "true" | "false"),
            SettingType::Number => value.parse::<u64>().is_ok(),
        };
        let fits = fits && (!name.ends_with("scheme") || matches!(value, "http" | "https"));
        if !fits {
            let due = match kind {
                SettingType::Flag => "true or false",
                SettingType::Number => "a number",
                _ => "http or https",
            };
            return Err(Error::usage(format!("the setting {name} must be {due}, not {value:?}")));
        }
        self.0.insert(name, value.to_owned().into());
        Ok(())
    }

    /// Merges `other` into these settings, overriding existing values.
    pub fn extend(&mut self, other: Settings) {
        self.0.extend(other.0);
    }

    /// Returns a text or secret; `None` if empty or not set.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(KNOWN.iter().any(|(known, _)| *known == name), "{name}");
        self.0.get(name).map(|value| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| value == "true")
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn has_secrets(&self) -> bool {
        KNOWN.iter().any(|(name, kind)| *kind == SettingType::Secret && self.0.contains_key(name))
    }
}

/// Returns the error that there is no such setting, with the one that may be meant.
fn unknown(name: &str) -> Error {
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let nearest = KNOWN.iter().map(|(known, _)| *known).min_by_key(|known| distance(known));
    let guess = nearest.filter(|known| distance(known) <= 3);
    let guess = guess.map_or(String::new(), |known| format!("; did you mean {known}?"));
    Error::usage(format!("tilefs does not have the setting {name}{guess}"))
}

/// Options for object stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudOptions {
    /// The settings of this prefix.
    pub settings: Settings,
    /// Whether requests are unsigned: for public buckets.
    pub anonymous: bool,
    /// Time limit of one request including its retries.
    pub io_timeout: Duration,
    /// Folder of the disk cache of stored bytes, and its limit in bytes.
    pub disk_cache: Option<(PathBuf, u64)>,
}

impl CloudOptions {
    /// The usual limit of [`CloudOptions::disk_cache`] in bytes.
    pub const DISK_CACHE_SIZE: u64 = 10 << 30;
}

impl Default for CloudOptions {
    fn default() -> Self {
        CloudOptions {
            settings: Settings::default(),
            anonymous: false,
            io_timeout: Duration::from_secs(60),
            disk_cache: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SAVED: &str = "# a remark\nsm.compute_concurrency_level 2\nsm.memory_budget 5\nvfs.s3.connect_timeout_ms 10800\n\
                         vfs.s3.max_parallel_ops 2\nvfs.s3.region eu-west-1\nvfs.s3.sse aws:kms\n\
                         vfs.s3.request_timeout_ms 4000\nvfs.s3.use_virtual_addressing  true\nvfs.s3.ca_file \n";

    #[test]
    fn saved_files_are_read_and_unknown_settings_reported() {
        let (settings, unknown) = Settings::parse(SAVED).unwrap();
        assert_eq!(settings.text("vfs.s3.region"), Some("eu-west-1"));
        assert_eq!(settings.number("vfs.s3.request_timeout_ms"), Some(4000));
        assert_eq!(settings.flag("vfs.s3.use_virtual_addressing"), Some(true));
        // TileDB's defaults count as not set.
        assert_eq!(settings.number("vfs.s3.connect_timeout_ms"), None);
        assert_eq!(settings.number("vfs.s3.max_parallel_ops"), None);
        assert_eq!(unknown, ["vfs.s3.sse"]);
        let error = Settings::parse("vfs.s3.scheme ftp").unwrap_err().to_string();
        assert!(error.contains("vfs.s3.scheme") && error.contains("http or https"), "{error}");
        assert!(Settings::parse("vfs.s3.max_parallel_ops many").is_err());
        assert!(Settings::parse("vfs.s3.no_sign_request maybe").is_err());
    }

    #[test]
    fn typed_settings_are_checked() {
        let mut settings = Settings::default();
        settings.set_typed("vfs.s3.endpoint_override", "localhost:9000").unwrap();
        assert_eq!(settings.text("vfs.s3.endpoint_override"), Some("localhost:9000"));
        let mut refused = |name: &str| settings.set_typed(name, "hunter2").unwrap_err().to_string();
        let error = refused("vfs.s3.endpoint_overide");
        assert!(error.contains("did you mean vfs.s3.endpoint_override"), "{error}");
        let error = refused("vfs.s3.aws_secret_access_key");
        assert!(error.contains("--config") && !error.contains("hunter2"), "{error}");
        assert!(!refused("vfs.nonsense.setting").contains("did you mean"));
    }

    #[test]
    fn programs_give_secrets_too() {
        let mut settings = Settings::default();
        settings.set_in_process("vfs.s3.aws_secret_access_key", "hunter2").unwrap();
        assert_eq!(settings.text("vfs.s3.aws_secret_access_key"), Some("hunter2"));
        let error = settings.set_in_process("vfs.s3.aws_secret_acess_key", "hunter2").unwrap_err().to_string();
        assert!(error.contains("did you mean vfs.s3.aws_secret_access_key") && !error.contains("hunter2"), "{error}");
        assert!(settings.set_in_process("vfs.s3.max_parallel_ops", "many").is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, "vfs.s3.aws_secret_access_key hunter2\n").unwrap();
        let settings = Settings::read(&path).unwrap();
        assert_eq!(settings.text("vfs.s3.aws_secret_access_key"), Some("hunter2"));
        let shown = format!("{:?}", CloudOptions { settings, ..CloudOptions::default() });
        assert!(shown.contains("aws_secret_access_key") && !shown.contains("hunter2"), "{shown}");
    }
}
