//! Manual pages as plain text, for terminals without man(1). Supports the requests that the pages of tilefs use.

/// Maximum length of lines, except verbatim ones.
const WIDTH: usize = 78;

/// Indentation of text, and of each `.RS` and tagged paragraph relative to its surroundings.
const INDENT: usize = 4;

/// Converts a page of the macro package man(7) to text: headings at the left, paragraphs filled.
pub fn plain_text(source: &str) -> String {
    let mut page = Page::default();
    source.lines().for_each(|line| page.line(line));
    page.end_paragraph();
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    /// The words of the current paragraph.
    paragraph: String,
    /// Whether the next word is joined to the last one (`\c`).
    joins: bool,
    /// Number of open `.RS`.
    shifts: usize,
    /// Whether paragraphs are indented behind their tag.
    is_tagged: bool,
    /// Whether the next line is the tag of a paragraph.
    expects_tag: bool,
    /// Whether lines are verbatim.
    verbatim: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        let Some(request) = line.strip_prefix('.') else { return self.words(&unescaped(line)) };
        let (name, rest) = request.split_once(' ').unwrap_or((request, ""));
        match name {
            "SH" | "SS" => self.heading(name, rest),
            "PP" => {
                self.end_paragraph();
                self.blank_line();
                self.is_tagged = false;
            }
            "TP" => {
                self.end_paragraph();
                self.blank_line();
                self.is_tagged = false;
                self.expects_tag = true;
            }
            "IP" => {
                self.end_paragraph();
                self.is_tagged = false;
                self.words(&arguments(rest).into_iter().next().unwrap_or_default());
                self.end_paragraph();
                self.is_tagged = true;
            }
            "RS" => {
                self.end_paragraph();
                self.shifts += 1;
            }
            "RE" => {
                self.end_paragraph();
                self.shifts = self.shifts.saturating_sub(1);
            }
            "nf" | "EX" => {
                self.end_paragraph();
                self.verbatim = true;
            }
            "fi" | "EE" => {
                self.end_paragraph();
                self.verbatim = false;
            }
            "br" => self.end_paragraph(),
            // One font: its arguments are words.
            "B" | "I" => self.words(&arguments(rest).join(" ")),
            // Two alternating fonts: its arguments are one word.
            "BR" | "RB" | "BI" | "IB" | "IR" | "RI" => self.words(&arguments(rest).concat()),
            // Comments and the title, for installed pages only.
            _ => {}
        }
    }

    fn heading(&mut self, name: &str, rest: &str) {
        self.end_paragraph();
        self.blank_line();
        (self.is_tagged, self.shifts) = (false, 0);
        let indent = if name == "SS" { "  " } else { "" };
        self.text.push_str(&format!("{indent}{}\n", arguments(rest).join(" ")));
    }

    fn words(&mut self, words: &str) {
        let (words, continues) = match words.strip_suffix("\\c") {
            Some(words) => (words, true),
            None => (words, false),
        };
        if !self.paragraph.is_empty() && !self.joins {
            self.paragraph.push(' ');
        }
        self.paragraph.push_str(words);
        self.joins = continues;
        if self.verbatim && !continues {
            self.end_paragraph();
        }
        if self.expects_tag && !continues {
            self.end_paragraph();
            (self.expects_tag, self.is_tagged) = (false, true);
        }
    }

    fn blank_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Outputs the current paragraph, in lines of at most [`WIDTH`].
    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        self.joins = false;
        let indent = " ".repeat(INDENT * (1 + self.shifts + usize::from(self.is_tagged)));
        if self.verbatim {
            if !paragraph.is_empty() {
                self.text.push_str(&format!("{indent}{paragraph}\n"));
            }
            return;
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.text.push_str(&format!("{indent}{line}\n"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.text.push_str(&format!("{indent}{line}\n"));
        }
    }
}

/// Returns the arguments of a request: words, or text in double quotes.
fn arguments(rest: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = rest.trim_start();
    while !rest.is_empty() {
        let (argument, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        arguments.push(unescaped(argument));
        rest = after.trim_start();
    }
    arguments
}

/// Removes escapes from text, except `\c` at the end.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let mut characters = escape.chars();
        match characters.next() {
            // A font: `\fB`.
            Some('f') => {
                characters.next();
            }
            Some('(') => {
                let name: String = characters.by_ref().take(2).collect();
                out.push_str(match name.as_str() {
                    "oq" => "\u{2018}",
                    "cq" => "\u{2019}",
                    "lq" => "\u{201c}",
                    "rq" => "\u{201d}",
                    _ => "",
                });
            }
            Some('c') if characters.as_str().is_empty() => out.push_str("\\c"),
            Some('&' | 'c') | None => {}
            Some('e') => out.push('\\'),
            Some(other) => out.push(other),
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_layout() {
        let source = r#".\" A comment.
.TH X 1 "" "x"
.SH NAME
x \- a page
.SH "TWO WORDS"
Some
.B bold
text,
.BR mount (8),
and \(lqquotes\(rq.
.PP
.RS
.nf
\&..10    stands
.I as "  it  " is
.fi
.RE
.TP
.BI \-\-at " TIME"
What it
is for.
.TP
.I CAT\c
\&...
More.
"#;
        let wanted = "\
NAME
    x - a page

TWO WORDS
    Some bold text, mount(8), and \u{201c}quotes\u{201d}.

        ..10    stands
        as   it   is

    --at TIME
        What it is for.

    CAT...
        More.
";
        assert_eq!(plain_text(source), wanted);
    }

    #[test]
    fn long_paragraphs_are_filled() {
        let text = plain_text(&"word ".repeat(100));
        assert!(
            text.lines().count() > 5 && text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    word"))
        );
    }

    #[test]
    fn manual_pages_keep_all_words_and_no_request() {
        for source in [include_str!("../../man/tilefs.1"), include_str!("../../man/tilefs-paths.7")] {
            let text = plain_text(source);
            assert!(!text.lines().any(|line| line.starts_with('.')) && !text.contains('\\'), "{text}");
            let headings = source.lines().filter_map(|line| line.strip_prefix(".SH "));
            for heading in headings {
                assert!(text.lines().any(|line| line == heading.trim_matches('"')), "{heading}");
            }
            let known = [
                "TH", "SH", "SS", "PP", "TP", "IP", "RS", "RE", "nf", "fi", "EX", "EE", "br", "B", "I", "BR", "RB",
                "BI", "IR", "RI", "\\\"",
            ];
            for request in source.lines().filter_map(|line| line.strip_prefix('.')) {
                let name = request.split(' ').next().unwrap_or_default();
                assert!(known.contains(&name), "{request}");
            }
        }
    }
}
