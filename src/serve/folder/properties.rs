//! WebDAV properties (RFC 4918): which ones a PROPFIND asks for, and their XML.

use std::collections::HashMap;
use std::fmt::Write;

use tilefs_base::error::Error;
use tilefs_base::markup::escape_for_page;
use tilefs_base::xml::{XmlElement, XmlReader};
use tilefs_threads::cancellation;

use crate::serve::http::path::append;

const DAV: &str = "DAV:";

/// Maximum number of properties that a request may name, and maximum length of a name in bytes. Each is repeated for
/// every member of a folder.
const MOST_NAMED: usize = 64;
const LONGEST_NAME: usize = 256;

/// A property that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    ResourceType,
    DisplayName,
    ContentLength,
    ContentType,
    Etag,
    LastModified,
}

/// All known properties with their names, which are in the namespace `DAV:`.
const KNOWN: [(Property, &str); 6] = [
    (Property::ResourceType, "resourcetype"),
    (Property::DisplayName, "displayname"),
    (Property::ContentLength, "getcontentlength"),
    (Property::ContentType, "getcontenttype"),
    (Property::Etag, "getetag"),
    (Property::LastModified, "getlastmodified"),
];

/// The properties that a PROPFIND asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// All that we know, with their values.
    All,
    /// Only the names of all that we know.
    Names,
    These(Vec<Named>),
}

/// A property that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    known: Option<Property>,
    /// The name of its element in a reply, with the prefix of its namespace.
    element: String,
    /// The namespace, if the reply has to declare its prefix.
    declared: Option<(String, String)>,
}

/// A file or folder with the values of its properties. Values that are not known are missing.
#[derive(Debug, Default)]
pub struct Resource {
    /// The path of its URL.
    pub href: String,
    pub name: String,
    pub is_folder: bool,
    pub length: Option<u64>,
    pub content_type: Option<&'static str>,
    pub etag: Option<String>,
    /// The time of the last change, in HTTP's date format.
    pub modified: Option<String>,
    /// Whether the lookup failed.
    pub has_failed: bool,
}

/// The end of a reply.
pub const AFTER: &str = "</D:multistatus>\n";

impl Asked {
    /// Parses the body of a PROPFIND. An empty one asks for all.
    ///
    /// # Errors
    /// The reason why it is malformed, in one line.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        if body.is_empty() {
            return Ok(Asked::All);
        }
        let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
        let asked = XmlReader::new(text, cancellation::check).and_then(Self::read);
        asked.map_err(|error| format!("the body is not XML: {error}"))?
    }

    /// Reads the root element, which says what is asked for, or that it is something else.
    fn read(mut reader: XmlReader<'_>) -> Result<Result<Self, String>, Error> {
        let root = reader.root()?;
        if (reader.namespace(&root), root.name()) != (Some(DAV), "propfind") {
            return Ok(Err("the body is not a propfind element".to_owned()));
        }
        let (mut named, mut asked) = (None, Asked::All);
        while let Some(child) = reader.child(&root)? {
            match child.name() {
                "prop" if named.is_none() && reader.namespace(&child) == Some(DAV) => {
                    named = Some(named_in(&mut reader, &child)?);
                }
                "propname" if reader.namespace(&child) == Some(DAV) => asked = Asked::Names,
                _ => {}
            }
        }
        reader.finish()?;
        Ok(named.map_or(Ok(asked), |named| named.map(Asked::These)))
    }

    /// Returns the beginning of a reply. It declares each namespace once, however many properties and members follow.
    pub fn before(&self) -> String {
        let mut before = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\"".to_owned();
        let named = if let Asked::These(named) = self { &named[..] } else { &[] };
        for (prefix, namespace) in named.iter().filter_map(|one| one.declared.as_ref()) {
            append!(before, " xmlns:{prefix}=\"{}\"", escape_for_page(namespace));
        }
        before + ">\n"
    }

    /// Appends the `response` element of a resource.
    pub fn respond(&self, resource: &Resource, out: &mut String) {
        append!(out, "<D:response><D:href>{}</D:href>", escape_for_page(&resource.href));
        if resource.has_failed {
            out.push_str("<D:status>HTTP/1.1 500 Internal Server Error</D:status></D:response>\n");
            return;
        }
        let (mut found, mut missing) = (String::new(), String::new());
        match self {
            Asked::All => KNOWN.iter().for_each(|(property, name)| {
                if let Some(value) = resource.value(*property) {
                    append!(found, "<D:{name}>{value}</D:{name}>");
                }
            }),
            Asked::Names => KNOWN.iter().for_each(|(property, name)| {
                if resource.value(*property).is_some() {
                    append!(found, "<D:{name}/>");
                }
            }),
            Asked::These(named) => named.iter().for_each(|Named { known, element, .. }| {
                match known.and_then(|property| resource.value(property)) {
                    Some(value) => {
                        append!(found, "<{element}>{value}</{element}>");
                    }
                    None => {
                        append!(missing, "<{element}/>");
                    }
                }
            }),
        }
        let mut group = |properties: &str, status: &str| {
            append!(
                out,
                "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
            );
        };
        if !found.is_empty() || missing.is_empty() {
            group(&found, "200 OK");
        }
        if !missing.is_empty() {
            group(&missing, "404 Not Found");
        }
        out.push_str("</D:response>\n");
    }
}

/// Returns the properties that the children of an element name, each once; or that there are too many or their names are
/// too long.
fn named_in<'t>(reader: &mut XmlReader<'t>, element: &XmlElement<'t>) -> Result<Result<Vec<Named>, String>, Error> {
    let (mut all, mut prefixes) = (Vec::<Named>::new(), HashMap::new());
    while let Some(child) = reader.child(element)? {
        let name = child.name();
        let Some(namespace) = reader.namespace(&child).map(str::to_owned) else {
            return Ok(Err(format!("the prefix of {name} is not declared")));
        };
        if name.len() > LONGEST_NAME {
            return Ok(Err(format!("a name of more than {LONGEST_NAME} bytes")));
        }
        let next = format!("n{}", prefixes.len());
        let (prefix, is_new) = match namespace.as_str() {
            "" => (None, false),
            DAV => (Some("D".to_owned()), false),
            _ => {
                let is_new = !prefixes.contains_key(&namespace);
                (Some(prefixes.entry(namespace.clone()).or_insert(next).clone()), is_new)
            }
        };
        let known = KNOWN.iter().find(|(_, known)| namespace == DAV && name == *known).map(|(property, _)| *property);
        let element = prefix.as_ref().map_or_else(|| name.to_owned(), |prefix| format!("{prefix}:{name}"));
        let declared = prefix.filter(|_| is_new).map(|prefix| (prefix, namespace));
        if all.iter().all(|one| one.element != element) {
            all.push(Named { known, element, declared });
        }
        if all.len() > MOST_NAMED {
            return Ok(Err(format!("more than {MOST_NAMED} properties")));
        }
    }
    Ok(Ok(all))
}

impl Resource {
    /// Returns the value of a property as XML.
    fn value(&self, property: Property) -> Option<String> {
        match property {
            Property::ResourceType => Some(if self.is_folder { "<D:collection/>" } else { "" }.to_owned()),
            Property::DisplayName => Some(escape_for_page(&self.name)),
            Property::ContentLength => self.length.map(|length| length.to_string()),
            Property::ContentType => self.content_type.map(escape_for_page),
            Property::Etag => self.etag.as_deref().map(escape_for_page),
            Property::LastModified => self.modified.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Resource {
        Resource {
            href: "/a%20b/c.f32".to_owned(),
            name: "c.f32".to_owned(),
            length: Some(12),
            content_type: Some("application/octet-stream"),
            etag: Some("\"e\"".to_owned()),
            modified: Some("Tue, 02 Jan 2024 00:00:00 GMT".to_owned()),
            ..Resource::default()
        }
    }

    /// Returns the properties of the groups with a status, and their values.
    fn texts(xml: &str, status: &str) -> Vec<(String, String)> {
        let mut reader = XmlReader::new(xml, || Ok(())).unwrap();
        let (root, mut all) = (reader.root().unwrap(), Vec::new());
        while let Some(response) = reader.child(&root).unwrap() {
            while let Some(group) = reader.child(&response).unwrap() {
                let (mut found, mut is_of_status) = (Vec::new(), false);
                while let Some(part) = reader.child(&group).unwrap() {
                    match part.name() {
                        "status" => is_of_status = reader.text(&part).unwrap().contains(status),
                        "prop" => {
                            while let Some(one) = reader.child(&part).unwrap() {
                                let name = format!("{{{}}}{}", reader.namespace(&one).unwrap(), one.name());
                                found.push((name, reader.text(&one).unwrap()));
                            }
                        }
                        _ => {}
                    }
                }
                all.extend(found.into_iter().filter(|_| is_of_status));
            }
        }
        reader.finish().unwrap();
        all
    }

    fn response(body: &str, resource: &Resource) -> String {
        let asked = Asked::parse(body.as_bytes()).unwrap();
        let mut out = asked.before();
        asked.respond(resource, &mut out);
        out + AFTER
    }

    #[test]
    fn known_properties_have_values_and_others_are_not_found() {
        let body = "<?xml version='1.0'?><a:propfind xmlns:a='DAV:' xmlns:b='urn:x&quot;&lt;'><a:prop>\
                    <a:getcontentlength/><a:quota-used-bytes/><b:getcontentlength/><c xmlns=''/></a:prop></a:propfind>";
        let xml = response(body, &file());
        assert_eq!(texts(&xml, "200"), [("{DAV:}getcontentlength".to_owned(), "12".to_owned())]);
        let missing: Vec<String> = texts(&xml, "404").into_iter().map(|(name, _)| name).collect();
        assert_eq!(missing, ["{DAV:}quota-used-bytes", "{urn:x\"<}getcontentlength", "{}c"]);
    }

    #[test]
    fn a_namespace_is_declared_once_and_a_property_named_once() {
        let names: String = (0..MOST_NAMED).map(|number| format!("<b:a{number}/><b:a0/>")).collect();
        let body = format!("<propfind xmlns='DAV:' xmlns:b='urn:{}'><prop>{names}</prop></propfind>", "x".repeat(1000));
        let asked = Asked::parse(body.as_bytes()).unwrap();
        let mut out = asked.before();
        let before = out.len();
        (0..10).for_each(|_| asked.respond(&file(), &mut out));
        assert!(before < 1200 && out.len() - before < 10 * 1000, "{before}, {}", out.len());
        let missing = texts(&(out + AFTER), "404");
        assert_eq!(missing.len(), 10 * MOST_NAMED);
        assert!(missing.iter().all(|(name, _)| name.starts_with("{urn:xxx")));
    }

    #[test]
    fn all_and_names_leave_out_what_is_not_known() {
        for body in ["", "<propfind xmlns='DAV:'><allprop/></propfind>", "\u{FEFF}<propfind xmlns='DAV:'/>"] {
            assert_eq!(texts(&response(body, &file()), "200").len(), 6, "{body}");
        }
        let folder = Resource { href: "/a/".to_owned(), is_folder: true, ..Resource::default() };
        let names = texts(&response("<propfind xmlns='DAV:'><propname/></propfind>", &folder), "200");
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(response("", &folder).contains("<D:resourcetype><D:collection/></D:resourcetype>"));
        let failed = Resource { has_failed: true, ..file() };
        assert!(response("", &failed).contains("<D:status>HTTP/1.1 500") && !response("", &failed).contains("prop"));
    }

    #[test]
    fn malformed_bodies_are_refused() {
        let many = format!(
            "<propfind xmlns='DAV:'><prop>{}</prop></propfind>",
            (0..=MOST_NAMED).map(|number| format!("<x{number}/>")).collect::<String>()
        );
        let long = format!("<propfind xmlns='DAV:'><prop><{}/></prop></propfind>", "x".repeat(LONGEST_NAME + 1));
        let bomb = "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;'>]><propfind xmlns='DAV:'>&c;</propfind>";
        for body in ["<", "<propfind/>", "<prop xmlns='DAV:'/>", "text", &many, &long, bomb] {
            assert!(Asked::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Asked::parse(&[0xFF, 0xFE]).is_err());
    }
}
