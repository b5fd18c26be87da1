//! WebDAV properties (RFC 4918): which ones a PROPFIND asks for, and their XML.

use std::fmt::Write;

use super::path::{append, escape_markup};

const DAV: &str = "DAV:";

/// Maximum number of properties that a request may name. Each is repeated for every member of a folder.
const MOST_NAMED: usize = 64;

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
    These(Vec<Name>),
}

/// The name of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    namespace: String,
    name: String,
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

/// The beginning and the end of a reply.
pub const BEFORE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
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
        let document = roxmltree::Document::parse(text.trim_start_matches('\u{FEFF}'))
            .map_err(|error| format!("the body is not XML: {error}"))?;
        let root = document.root_element();
        if !root.has_tag_name((DAV, "propfind")) {
            return Err("the body is not a propfind element".to_owned());
        }
        let child = |name: &str| root.children().find(|child| child.has_tag_name((DAV, name)));
        if let Some(named) = child("prop") {
            let names: Vec<Name> = named
                .children()
                .filter(|child| child.is_element())
                .map(|child| Name {
                    namespace: child.tag_name().namespace().unwrap_or_default().to_owned(),
                    name: child.tag_name().name().to_owned(),
                })
                .take(MOST_NAMED + 1)
                .collect();
            if names.len() > MOST_NAMED {
                return Err(format!("more than {MOST_NAMED} properties"));
            }
            return Ok(Asked::These(names));
        }
        if child("propname").is_some() { Ok(Asked::Names) } else { Ok(Asked::All) }
    }

    /// Appends the `response` element of a resource.
    pub fn respond(&self, resource: &Resource, out: &mut String) {
        append!(out, "<D:response><D:href>{}</D:href>", escape_markup(&resource.href));
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
            Asked::These(names) => {
                for name in names {
                    let known = KNOWN.iter().find(|(_, known)| name.namespace == DAV && name.name == *known);
                    match known.and_then(|(property, known)| Some((resource.value(*property)?, known))) {
                        Some((value, known)) => {
                            append!(found, "<D:{known}>{value}</D:{known}>");
                        }
                        // Names of elements that were parsed need no escapes, but namespaces do.
                        None => {
                            append!(missing, "<{} xmlns=\"{}\"/>", name.name, escape_markup(&name.namespace));
                        }
                    }
                }
            }
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

impl Resource {
    /// Returns the value of a property as XML.
    fn value(&self, property: Property) -> Option<String> {
        match property {
            Property::ResourceType => Some(if self.is_folder { "<D:collection/>" } else { "" }.to_owned()),
            Property::DisplayName => Some(escape_markup(&self.name)),
            Property::ContentLength => self.length.map(|length| length.to_string()),
            Property::ContentType => self.content_type.map(escape_markup),
            Property::Etag => self.etag.as_deref().map(escape_markup),
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

    fn texts(xml: &str, status: &str) -> Vec<(String, String)> {
        let xml = format!("{BEFORE}{xml}{AFTER}");
        let document = roxmltree::Document::parse(&xml).unwrap();
        let groups = document.descendants().filter(|node| node.has_tag_name((DAV, "propstat")));
        let of_status = groups.filter(|group| {
            let text =
                group.children().find(|child| child.has_tag_name((DAV, "status"))).and_then(|child| child.text());
            text.is_some_and(|text| text.contains(status))
        });
        let properties = of_status.flat_map(|group| group.first_element_child().unwrap().children());
        properties
            .map(|one| {
                let name = one.tag_name();
                (format!("{{{}}}{}", name.namespace().unwrap_or(""), name.name()), one.text().unwrap_or("").to_owned())
            })
            .collect()
    }

    fn response(body: &str, resource: &Resource) -> String {
        let mut out = String::new();
        Asked::parse(body.as_bytes()).unwrap().respond(resource, &mut out);
        out
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
        let many = format!("<propfind xmlns='DAV:'><prop>{}</prop></propfind>", "<x/>".repeat(MOST_NAMED + 1));
        let bomb = "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;'>]><propfind xmlns='DAV:'>&c;</propfind>";
        for body in ["<", "<propfind/>", "<prop xmlns='DAV:'/>", "text", &many, bomb] {
            assert!(Asked::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Asked::parse(&[0xFF, 0xFE]).is_err());
    }
}
