//! The page of a folder for people: its path, its members, and for an array or a group a description and commands
//! that read it. In browsers that run scripts, the [`application`] takes its place.

use std::sync::Arc;

use hyper::header::HOST;
use tilefs_base::markup::escape_for_page;
use tilefs_tree::views::web_commands;
use tilefs_vfs::node::quoting::shell_word;
use tilefs_vfs::{EntryKind, Folder, Node};

use super::application;
use crate::serve::http::path::{TreePath, decode, encode_name};
use crate::serve::http::refusal::{NodeFailure, Refusal};
use crate::serve::message::Question;
use crate::serve::site::Site;

/// Maximum number of bytes of a text that is shown on the page.
const MAX_TEXT: u64 = 64 << 10;

/// Maximum length of the URL of a folder whose page has commands, and of all links to the folders around it, in bytes.
/// A path may have thousands of names.
const MAX_COMMAND_URL: usize = 1 << 10;
const MAX_TRAIL: usize = 16 << 10;

/// The texts that describe an array or a group; the first that exists is shown.
const DESCRIPTIONS: [&str; 2] = ["schema.txt", "README.txt"];

/// The folder of an array or a group as Zarr.
const ZARR: &str = "zarr";

/// An array's schema for programs: only folders of arrays have it.
const SCHEMA: &str = "schema.json";

/// The parts of a page around the listing of a folder.
pub struct Page {
    site: Arc<Site>,
    path: TreePath,
    folder: Arc<dyn Folder>,
    /// The URL of the folder.
    url: String,
    is_array: bool,
    /// The name of what is served.
    title: String,
    /// The path of the root in URLs, without the slash at its end.
    root: String,
}

impl Page {
    /// Prepares the page of a folder.
    ///
    /// # Errors
    /// Those of a lookup.
    pub fn new(site: &Arc<Site>, path: &TreePath, node: &Node, asked: &Question) -> Result<Self, NodeFailure> {
        let Node::Folder(folder) = node else { return Err(NodeFailure::Absent(None)) };
        let is_array = folder.lookup(SCHEMA)?.is_some();
        let host = asked.headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| is_host(host));
        let root = asked.root.path().to_owned();
        let url = format!("http://{}{root}{}", host.unwrap_or("localhost"), path.url(true));
        let (path, folder, title) = (path.clone(), folder.clone(), site.title());
        Ok(Page { site: site.clone(), path, folder, url, is_array, title, root })
    }

    /// Returns the page up to the rows of the listing.
    pub fn before(&self) -> String {
        let own = escape_for_page(self.path.names().last().unwrap_or(&self.title));
        let root = self.path.to_root();
        let look = application::elements(&root, self.is_array.then_some(SCHEMA));
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\" data-root=\"{root}\" data-title=\"{}\"><head><meta charset=\"utf-8\">\
             <title>{own}</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"referrer\" content=\"no-referrer\">{look}</head><body>\n<div class=\"listing\">\n<h1>{}</h1>\n",
            escape_for_page(&self.title),
            self.trail()
        );
        if self.path.names().last().is_some_and(|name| SELECTIONS.contains(&name.as_str())) {
            page += FORM;
        }
        page + "<table>\n"
    }

    /// Returns links to the enclosing folders. If their paths are very long, the inner ones are not links.
    fn trail(&self) -> String {
        // Programs that follow links to list a folder recognise absolute links, but mistake `../../` for a member, and
        // fsspec takes `/` for the folder itself.
        let (mut trail, mut url, mut length) = (Vec::new(), format!("{}/", self.root), 0);
        for name in std::iter::once(self.title.as_str()).chain(self.path.names().iter().map(String::as_str)) {
            if !trail.is_empty() {
                encode_name(name, &mut url);
                url.push('/');
            }
            length += url.len();
            let dot = if url == "/" { "." } else { "" };
            trail.push(match length <= MAX_TRAIL {
                true => format!("<a href=\"{}{dot}\">{}</a>", escape_for_page(&url), escape_for_page(name)),
                false => escape_for_page(name),
            });
        }
        // The folder itself is not a link.
        trail.pop();
        trail.push(escape_for_page(self.path.names().last().unwrap_or(&self.title)));
        trail.join(" / ")
    }

    /// Returns the page after the rows of the listing. It describes the folder if there are `few` rows: the texts of an
    /// array are as long as its list of files. What cannot be read is left out.
    pub fn after(&self, few: bool) -> String {
        let mut page = "</table>\n".to_owned();
        let description = DESCRIPTIONS.iter().filter(|_| few).find_map(|name| text_of(&*self.folder, name));
        if let Some(description) = description.map(|text| self.site.host_paths.hide(&text)) {
            let commands = self.commands(&description);
            if !commands.is_empty() {
                page += "<h2>Commands</h2>\n<pre>";
                for (about, command) in &commands {
                    page += &without_links(&format!("# {about}\n{command}\n"));
                }
                page += "</pre>\n";
            }
            page += &format!("<pre>{}</pre>\n", without_links(&description));
        }
        page += "</div>\n";
        page + "</body></html>\n"
    }

    /// Returns commands that read the folder, each with a line that explains it.
    fn commands(&self, description: &str) -> Vec<(&'static str, String)> {
        if self.url.len() > MAX_COMMAND_URL {
            return Vec::new();
        }
        let doing = || format!("commands for {}", self.path.text());
        self.site.attempt(doing, || commands(&*self.folder, &self.url, description)).unwrap_or_default()
    }
}

/// The folders that take selections, and the field of the form in their pages.
const SELECTIONS: [&str; 2] = ["slice", "islice"];
const SELECT: &str = "select";

/// A form for a selection, which is a folder in those of [`SELECTIONS`].
const FORM: &str = "<form><label>Selection <input name=\"select\" placeholder=\"10..19,5..9\"></label> \
                    <button>Open</button></form>\n";

/// Returns the URL of the selection that the form of a page was sent with.
pub fn chosen(path: &TreePath, asked: &Question) -> Option<String> {
    let is_form = path.names().last().is_some_and(|name| SELECTIONS.contains(&name.as_str()));
    let fields = asked.query.as_deref().filter(|_| is_form)?.split('&');
    let selection = fields.filter_map(|field| field.split_once('=')).find(|(name, _)| *name == SELECT)?.1;
    // In a form, `+` is a blank, and no selection has blanks.
    let selection = decode(&selection.replace('+', "")).ok().filter(|text| !text.is_empty())?;
    let mut url = String::from("./");
    encode_name(&selection, &mut url);
    url.push('/');
    Some(url)
}

/// Returns the page for a path that has no page: the reason, and links to what is near.
pub fn refusal(path: &TreePath, refusal: &Refusal) -> String {
    let reason = refusal.to_string();
    let title = match refusal {
        Refusal::Absent(_) => "Not found",
        Refusal::Failed(_) | Refusal::Cancelled => "This cannot be shown",
    };
    let root = path.to_root();
    let near = reason.strip_prefix(NEAR).and_then(|near| near.strip_suffix('?'));
    let look = application::style(&root);
    let near = near.map_or_else(String::new, |near| {
        let mut url = root.clone();
        for (number, name) in near.split('/').enumerate() {
            if number > 0 {
                url.push('/');
            }
            encode_name(name, &mut url);
        }
        format!("<p><a href=\"{url}\">{}</a></p>\n", escape_for_page(near))
    });
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{look}</head><body>\n\
         <main id=\"page\">\n<h1>{title}</h1>\n<p>{}</p>\n{near}<p><a href=\"{root}\">all that is here</a></p>\n\
         </main>\n</body></html>\n",
        without_links(&reason)
    )
}

/// The beginning of a reason that ends with a path.
const NEAR: &str = "no such file; did you mean ";

/// Returns a text with escapes for HTML. Programs that look for links in a page, such as fsspec, take every URL in its
/// source for one, so there is none.
fn without_links(text: &str) -> String {
    escape_for_page(text).replace("://", "&#58;//")
}

/// Returns whether a `Host` header can be part of a URL in a command.
fn is_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_[]".contains(&byte))
}

/// Returns a short text in a folder; `None` if it is missing, long or cannot be read.
fn text_of(folder: &dyn Folder, name: &str) -> Option<String> {
    let Ok(Some(Node::File(file))) = folder.lookup(name) else { return None };
    let content = file.open().ok().filter(|content| content.len() <= MAX_TEXT)?;
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns up to five commands that read the array or group at a URL, each with an explanation.
fn commands(folder: &dyn Folder, url: &str, description: &str) -> Result<Vec<(&'static str, String)>, NodeFailure> {
    let known = folder.known_paths();
    let at = |path: &str| {
        let mut full = url.to_owned();
        for (number, name) in path.split('/').enumerate() {
            if number > 0 {
                full.push('/');
            }
            encode_name(name, &mut full);
        }
        full
    };
    let python = |code: String| format!("python3 -c {}", shell_word(&code));
    let mut commands = vec![
        ("The names in it, for programs", format!("curl -s {}", shell_word(&format!("{url}?json")))),
        ("Every file with its size", format!("rclone ls {}", shell_word(&format!(":webdav,url='{url}':")))),
    ];
    let listed = folder.list()?;
    if let Some(file) = listed.iter().find(|entry| entry.kind == EntryKind::File) {
        commands.push(("One file", format!("curl -sO {}", shell_word(&at(&file.name)))));
    }
    if known.iter().any(|path| path == ZARR) {
        commands.extend(zarr_code(folder, &at(ZARR), description).map(|(about, code)| (about, python(code))));
    }
    commands.extend(web_commands(&known, at));
    commands.push((
        "All files as a folder, with the package davfs2, whose user needs a token or --allow-other",
        format!("mount -t davfs -o ro {} MNT", shell_word(url)),
    ));
    commands.truncate(5);
    Ok(commands)
}

/// The packages that read Zarr over HTTP.
const WITH_XARRAY: &str = "All of it in Python: pip install xarray zarr fsspec aiohttp";
const WITH_ANNDATA: &str = "All of it in Python: pip install anndata fsspec aiohttp";

/// Returns Python code that reads the Zarr group at a URL, with an explanation. `None` if no program takes the whole
/// for one dataset.
fn zarr_code(folder: &dyn Folder, url: &str, description: &str) -> Option<(&'static str, String)> {
    let xarray = || (WITH_XARRAY, format!("import xarray; print(xarray.open_zarr({url:?}))"));
    let anndata = || (WITH_ANNDATA, format!("import anndata; print(anndata.read_zarr({url:?}))"));
    let element =
        || (WITH_ANNDATA, format!("import anndata, zarr; print(anndata.io.read_elem(zarr.open({url:?}, mode='r')))"));
    if folder.known_paths().iter().any(|path| path == SCHEMA) {
        let Ok(Some(Node::Folder(zarr))) = folder.lookup(ZARR) else { return None };
        let metadata: serde_json::Value = serde_json::from_str(&text_of(&*zarr, "zarr.json")?).ok()?;
        let is_element = metadata["attributes"]["encoding-type"].is_string();
        return Some(if is_element { element() } else { xarray() });
    }
    // Looking it up in a group could open all members, so the group's README.txt tells for which program it is.
    match description {
        text if text.contains("anndata.read_zarr(\"zarr\")") => Some(anndata()),
        text if text.contains("xarray.open_zarr(\"zarr\")") => Some(xarray()),
        _ => None,
    }
}
