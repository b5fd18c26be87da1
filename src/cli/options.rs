//! The options that several commands share: opening arrays, and logging.

use std::env;
use std::path::{self, PathBuf};
#[cfg(feature = "cloud")]
use std::sync::Arc;

use ::log::LevelFilter;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tilefs_threads as threads;
use tilefs_threads::address_space;
use tilefs_tree::select::time::OpenWindow;
use tilefs_tree::{
    self as tree, DomainOptions, IndexOptions, ShownViews, TreeOptions, VariantLists, VariantReference, views,
};

#[cfg(feature = "cloud")]
use super::cloud::CloudArguments;
use super::{log, memory, size};
use crate::cli::failure::Failure;

/// Options for opening an array.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selecting and reading cells")]
pub struct Opening {
    /// Show the array as of this time, or what was written from T1 to T2 (T1..T2): ISO 8601 in UTC, or milliseconds
    /// since 1970; a date or a year means its end
    #[arg(long, value_name = "TIME", value_parser = parse_window)]
    at: Option<Typed<OpenWindow>>,

    /// Ignore everything written before this time
    #[arg(long, value_name = "TIME", value_parser = parse_start)]
    from: Option<Typed<u64>>,

    /// Read fragments that were consolidated, as long as they are there, in place of what was made of them
    #[arg(long)]
    originals: bool,

    /// The file or pipe with the key of an encrypted array: 32 bytes, or 64 hexadecimal digits
    #[arg(long, value_name = "FILE", env = "TILEFS_KEY_FILE", hide_env_values = true)]
    key_file: Option<PathBuf>,

    /// The box of cells that the files of a dense array cover
    #[arg(long, value_name = "EXTENT", default_value = "domain")]
    extent: ShownExtent,

    /// The order of the rows of sparse arrays
    #[arg(long, value_name = "ORDER", default_value = "array")]
    order: RowOrder,

    /// Memory for caches, such as 512M or 2G; a quarter of the memory but at most 1G if not given
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache_size: Option<u64>,

    /// Number of threads that decode at a time; one per core plus one if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Save the results of passes over all cells in this folder, for later mounts; tilefs/index in your cache directory
    /// if not given, `none` to disable
    #[arg(long, value_name = "DIR", env = "TILEFS_INDEX_DIR", hide_env_values = true)]
    index_dir: Option<PathBuf>,

    /// Maximum size of that folder; 1G if not given
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    index_size: Option<u64>,

    #[cfg(feature = "cloud")]
    #[command(flatten)]
    cloud: CloudArguments,

    #[command(flatten)]
    pub logging: Logging,
}

/// Options of the commands that show an array or a group as a tree.
#[derive(Debug, Args)]
pub struct TreeArguments {
    #[command(flatten)]
    slices: NamedSlices,

    /// Also list these views in directories; separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = shown_views())]
    show: Vec<ShownViews>,

    #[command(flatten)]
    pub opening: Opening,
}

/// The order of the rows of sparse arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RowOrder {
    /// The array's own order, the cheapest
    Array,
    /// Sorted by coordinates, the first dimension first
    Row,
}

/// Named slices, named lists of samples and regions, and the reference genome of variants.
#[derive(Debug, Default, Args)]
pub struct NamedSlices {
    /// List this slice under slice/NAME; may be repeated
    #[arg(long = "slice", value_name = "NAME=SELECTION", value_parser = parse_slice)]
    slices: Vec<(String, String)>,

    /// A list of samples of a TileDB-VCF dataset, one per line, for paths like vcf/samples=@NAME/; may be repeated
    #[arg(long, value_name = "FILE")]
    samples_file: Vec<PathBuf>,

    /// Regions in BED or as columns, for paths like vcf/slice/@NAME/ and vcf/merged/@NAME.vcf; may be repeated
    #[arg(long, value_name = "FILE")]
    regions_file: Vec<PathBuf>,

    /// The FASTA file of the reference genome, for vcf/sites/ of a TileDB-VCF dataset: a record for each site of a gVCF
    /// block
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
}

/// The name of all views together.
const ALL_VIEWS: &str = "all";

/// Logging options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub struct Logging {
    /// The lowest level of messages to report
    #[arg(long, value_name = "LEVEL", value_parser = log_levels(), default_value = "warn")]
    log_level: LevelFilter,

    /// Also report notable events: requests to object stores, retries
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Report everything, including each request of the kernel
    #[arg(short = 'd', long = "debug", conflicts_with = "log_level")]
    debug: bool,
}

/// A point or a window of time in milliseconds since 1970, with its text as typed.
#[derive(Debug, Clone)]
struct Typed<T> {
    time: T,
    text: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShownExtent {
    /// The domain, or the current domain if set
    Domain,
    /// The smallest box that holds all written cells
    Nonempty,
}

impl Opening {
    /// Converts to the library's options. Warns about times that look like something else.
    pub fn options(&self, slices: &NamedSlices) -> Result<TreeOptions, Failure> {
        let defaults = TreeOptions::default();
        let (from, at) = self.window()?;
        let reading = tilefs_reader::ReaderOptions {
            at,
            from,
            originals: self.originals,
            key_file: self.key_file.clone(),
            cache_size: self.cache_size.unwrap_or_else(memory::default_cache_size),
            threads: match self.threads {
                Some(threads) => threads.into(),
                // If address space is limited, use fewer threads, since each takes some.
                None if address_space::limit().is_some() => threads::cores(),
                None => defaults.reading.threads,
            },
            links: defaults.reading.links,
            #[cfg(feature = "cloud")]
            stores: Some(Arc::new(self.cloud.options()?)),
            #[cfg(not(feature = "cloud"))]
            stores: None,
            index: self.index()?,
        };
        Ok(TreeOptions {
            reading,
            extent: match self.extent {
                ShownExtent::Domain => tree::Extent::Domain,
                ShownExtent::Nonempty => tree::Extent::NonEmpty,
            },
            row_order: self.order == RowOrder::Row,
            is_watched: defaults.is_watched,
            slices: slices.slices.clone(),
            of_domains: DomainOptions::default().with(slices.lists()?).with(slices.reference()?),
            shown: defaults.shown,
            axes_of_images: defaults.axes_of_images,
        })
    }
}

impl TreeArguments {
    /// Converts to the library's options, as [`Opening::options`].
    pub fn options(&self) -> Result<TreeOptions, Failure> {
        let shown = self.show.iter().fold(ShownViews::NONE, ShownViews::and);
        Ok(TreeOptions { shown, ..self.opening.options(&self.slices)? })
    }

    /// Starts the log on standard error.
    pub fn start_log(&self) {
        self.opening.logging.start();
    }
}

/// The value of `--index-dir` that disables the index.
const NO_INDEX: &str = "none";

impl Opening {
    /// Returns the first and the last millisecond that are shown, as far as the options limit them. Warns about times
    /// that look like something else.
    fn window(&self) -> Result<OpenWindow, Failure> {
        let texts = [self.at.as_ref().map(|at| &at.text), self.from.as_ref().map(|from| &from.text)];
        for part in texts.into_iter().flatten().flat_map(|text| text.split("..")) {
            if let Some(warning) = tree::select::time::warning(part) {
                ::log::warn!("{warning}");
            }
        }
        let (start, at) = self.at.as_ref().map_or((None, None), |at| at.time);
        let from = self.from.as_ref().map(|from| from.time);
        if start.is_some() && from.is_some() {
            return Err(Failure::usage("--at begins at a time of its own here; leave out --from"));
        }
        match (start.or(from), at) {
            (Some(from), Some(at)) if from > at => {
                Err(Failure::usage("--from is later than --at, so that nothing is left to show"))
            }
            window => Ok(window),
        }
    }

    fn index(&self) -> Result<Option<IndexOptions>, Failure> {
        let folder = match &self.index_dir {
            Some(given) if given.as_os_str() == NO_INDEX || given.as_os_str().is_empty() => return Ok(None),
            Some(given) => path::absolute(given)
                .map_err(|error| Failure::usage(format!("--index-dir {}: {error}", given.display())))?,
            None => match usual_index_folder() {
                Some(folder) => folder,
                None => return Ok(None),
            },
        };
        let usual = IndexOptions::in_folder(folder);
        let most = self.index_size.unwrap_or(usual.most);
        Ok(Some(IndexOptions { most, is_required: self.index_dir.is_some(), ..usual }))
    }
}

/// Parses the interval of refreshes.
pub fn parse_interval(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds.ok_or_else(|| "write whole seconds from 1 to 86400, as in --refresh=30".to_owned())
}

fn usual_index_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("index"))
}

/// Returns the folder of tilefs in the user's cache directory, if there is one.
pub fn cache_folder() -> Option<PathBuf> {
    // The XDG Base Directory Specification says to ignore relative paths.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("tilefs"))
}

impl NamedSlices {
    /// Reads the lists.
    fn lists(&self) -> Result<VariantLists, Failure> {
        let mut lists = VariantLists::default();
        self.samples_file.iter().try_for_each(|file| lists.add_samples(file))?;
        self.regions_file.iter().try_for_each(|file| lists.add_regions(file))?;
        Ok(lists)
    }

    /// Opens the reference genome.
    fn reference(&self) -> Result<VariantReference, Failure> {
        let opened = self.reference.as_deref().map(VariantReference::open).transpose()?;
        Ok(opened.unwrap_or_default())
    }
}

/// Returns the parser of the name of a view, or of all.
fn shown_views() -> impl TypedValueParser<Value = ShownViews> {
    PossibleValuesParser::new(views::words().chain([ALL_VIEWS])).map(|typed| {
        let word = views::words().find(|word| *word == typed);
        word.map_or(ShownViews::ALL, |word| ShownViews::NONE.with(word))
    })
}

/// Returns the parser of a level of messages.
fn log_levels() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"]).try_map(|level| level.parse())
}

impl Logging {
    /// Returns whether everything is reported.
    pub fn is_debug(&self) -> bool {
        self.debug
    }

    /// Starts the log on standard error, at the chosen level.
    pub fn start(&self) {
        log::start(match () {
            () if self.debug => LevelFilter::Debug,
            () if self.verbose => self.log_level.max(LevelFilter::Info),
            () => self.log_level,
        });
    }
}

fn parse_window(text: &str) -> Result<Typed<OpenWindow>, String> {
    let time = tree::select::time::typed(text, tree::select::time::window).map_err(|error| error.to_string())?;
    Ok(Typed { time, text: text.to_owned() })
}

fn parse_start(text: &str) -> Result<Typed<u64>, String> {
    let (time, _) = tree::select::time::typed(text, tree::select::time::span).map_err(|error| error.to_string())?;
    Ok(Typed { time, text: text.to_owned() })
}

fn parse_slice(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, selection)) if !name.is_empty() && !name.contains('/') => {
            Ok((name.to_owned(), selection.to_owned()))
        }
        _ => Err("write it as NAME=SELECTION, for instance corner=0..9,0..9".into()),
    }
}
