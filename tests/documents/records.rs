//! What a saved result depends on is recorded without an omission: each function `record` takes all fields of its value
//! apart, so that the compiler asks for a new one.

use syn::visit::{self, Visit};
use syn::{Block, Expr, FnArg, ImplItemFn, Item, Member, Pat, PatStruct, Stmt};

use crate::rooms::sources;

/// Returns whether an expression is `self`.
fn is_self(expression: &Expr) -> bool {
    matches!(expression, Expr::Path(path) if path.path.is_ident("self"))
}

/// The functions that record, and what is wrong with them.
#[derive(Default)]
struct Records {
    count: usize,
    wrong: Vec<String>,
    /// Within such a function: whether it names `self`, and the fields that it leaves out or takes without need.
    names_self: bool,
    omissions: Vec<String>,
}

impl Records {
    /// Returns whether a function takes `self` apart first, or consists of one expression about all of it.
    fn is_complete(&self, body: &Block) -> bool {
        match body.stmts.as_slice() {
            [Stmt::Local(local), ..] => {
                local.init.as_ref().is_some_and(|init| is_self(&init.expr))
                    && matches!(local.pat, Pat::Struct(_) | Pat::TupleStruct(_) | Pat::Ident(_))
            }
            [Stmt::Expr(Expr::MethodCall(call), _)] => self.names_self || call.method == "add_unknown",
            [Stmt::Expr(..)] => self.names_self,
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Records {
    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        let is_recorder = |input: &FnArg| matches!(input, FnArg::Typed(input) if matches!(&*input.pat, Pat::Ident(name) if name.ident == "recorder"));
        let is_record = function.sig.ident == "record" && function.sig.inputs.iter().any(is_recorder);
        if !is_record {
            return visit::visit_impl_item_fn(self, function);
        }
        (self.names_self, self.omissions) = (false, Vec::new());
        visit::visit_block(self, &function.block);
        self.count += 1;
        if !self.is_complete(&function.block) {
            self.omissions.push("it does not take all of self apart first".to_owned());
        }
        self.wrong.append(&mut self.omissions);
    }

    fn visit_pat_struct(&mut self, pattern: &'ast PatStruct) {
        if pattern.rest.is_some() {
            self.omissions.push("it leaves out fields with ..".to_owned());
        }
        visit::visit_pat_struct(self, pattern);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        self.names_self |= is_self(expression);
        if let Expr::Field(field) = expression
            && is_self(&field.base)
            && let Member::Named(name) = &field.member
        {
            self.omissions.push(format!("it reads self.{name}"));
        }
        visit::visit_expr(self, expression);
    }
}

fn records_of(text: &str) -> Records {
    let (parsed, mut records) = (syn::parse_file(text).expect("Rust"), Records::default());
    let is_test = |item: &Item| matches!(item, Item::Mod(module) if module.ident == "tests");
    parsed.items.iter().filter(|item| !is_test(item)).for_each(|item| records.visit_item(item));
    records
}

#[test]
fn what_is_recorded_has_every_field() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, text) in sources().into_iter().filter(|(file, _)| file.contains("/src/") && !file.ends_with("tests.rs"))
    {
        let records = records_of(&text);
        count += records.count;
        wrong.extend(records.wrong.iter().map(|reason| format!("{file}: {reason}")));
    }
    assert!(wrong.is_empty(), "functions `record` with omissions:\n{}", wrong.join("\n"));
    assert!(count > 30, "only {count} functions `record` were found");
}

#[test]
fn omissions_are_found() {
    let check = |body: &str| {
        let text = format!("impl Recorded for X {{ fn record(&self, recorder: &mut Recorder) {{ {body} }} }}");
        records_of(&text).wrong.len()
    };
    for complete in [
        "let Self { a, b: _ } = self; recorder.add::<Self>(a);",
        "let Self(a) = self; a.record(recorder);",
        "match self { X::A(a) => a.record(recorder) }",
        "recorder.add_unknown();",
        "Recorded::record(self, recorder);",
    ] {
        assert_eq!(check(complete), 0, "{complete}");
    }
    for incomplete in [
        "let Self { a, .. } = self; recorder.add::<Self>(a);",
        "recorder.add::<Self>(self.a);",
        "recorder.add::<Self>(1);",
        "let a = 1; recorder.add::<Self>(a);",
        "let Self { a } = self; recorder.add::<Self>((a, self.b));",
        "",
    ] {
        assert!(check(incomplete) > 0, "{incomplete}");
    }
}
