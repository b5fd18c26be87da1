//! Folders as HTML and JSON.

use std::fs;

use crate::client::{Program, ask, demo, get, serve_toy};
use support::toy;

#[test]
fn a_folder_is_listed_as_json_and_as_links() {
    let server = Program::start(&demo(), &["--show", "zarr"]);
    let json = get(server.address, "/?json").json();
    let entry = |name: &str| json.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap().clone();
    assert_eq!(entry("temp.f32")["size"], 80_000);
    assert_eq!(entry("temp.f32")["mtime"], "Tue, 02 Jan 2024 00:00:00 GMT");
    assert_eq!((&entry("temp.f32")["type"], &entry("dims")["type"]), (&"file".into(), &"directory".into()));
    assert_eq!(ask(server.address, "GET", "/", &["Accept: application/json"]).json(), json);

    let page = ask(server.address, "GET", "/", &["Accept: text/html,application/json;q=0.9"]);
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let html = page.text();
    for part in ["<a href=\"temp.f32\">", "<td>80.0 kB</td>", "<a href=\"dims/\">", "float32 temp(y, x)", "curl -sO"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // Views that are only found by name are not in the table.
    assert!(html.contains("<a href=\"zarr/\">") && !html.contains("<a href=\"zarr2/\">"));
    let inner = get(server.address, "/dims/").text();
    assert!(inner.contains("<a href=\"y.i64\">") && inner.contains("<a href=\"/.\">demo</a> / dims"), "{inner}");
}

#[test]
fn a_folder_without_its_slash_is_redirected() {
    let server = Program::start(&demo(), &[]);
    for (target, location) in [
        ("/dims", "/dims/"),
        ("/slice/y=0..1%2Cx=2?json", "/slice/y=0..1,x=2/?json"),
        ("/slice/%3A,%3A", "/slice/%3A,%3A/"),
    ] {
        let reply = get(server.address, target);
        assert_eq!((reply.status, reply.header("location")), (301, location), "{target}");
        assert_eq!(get(server.address, location).status, 200, "{location}");
    }
    assert_eq!(get(server.address, "/temp.f32/").status, 404);
}

/// A form cannot make a path, so it sends the selection in its query.
#[test]
fn a_selection_from_a_form_is_a_folder() {
    let server = Program::start(&demo(), &[]);
    assert!(get(server.address, "/slice/").text().contains("<form><label>Selection <input name=\"select\""));
    let sent = get(server.address, "/slice/?select=y%3D5..9%2C3");
    assert_eq!((sent.status, sent.header("location")), (303, "./y=5..9,3/"));
    assert_eq!(get(server.address, "/dims/?select=y%3D5").status, 200);
    // It leads nowhere else.
    let sent = get(server.address, "/slice/?select=%2F%2Fevil.example%2F");
    assert_eq!((sent.status, sent.header("location")), (303, "./%2F%2Fevil.example%2F/"));
}

#[test]
fn a_name_that_is_wrong_gets_a_page_with_the_nearest() {
    let server = Program::start(&demo(), &[]);
    let wrong = ask(server.address, "GET", "/dims/yy.i64", &["Accept: text/html"]);
    assert_eq!((wrong.status, wrong.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(wrong.text().contains("<a href=\"../dims/y.i64\">dims/y.i64</a>"), "{}", wrong.text());
    let wrong = ask(server.address, "GET", "/%3Cscript%3E", &["Accept: text/html"]);
    assert!(wrong.status == 404 && !wrong.text().contains("<script"), "{}", wrong.text());
    // Programs get one line.
    assert!(get(server.address, "/dims/yy.i64").text().ends_with("did you mean dims/y.i64?\n"));
}

/// No size is looked up, and the reply does not wait for the last name.
#[test]
fn a_hundred_thousand_names_are_listed_without_looking_at_one() {
    let (server, address, counters) = serve_toy();
    let json = get(address, "/many/?json").json();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names.len() as u64, toy::MANY);
    assert!(names.iter().enumerate().all(|(number, name)| *name == format!("file-{number}")));
    assert_eq!(counters.lengths.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(get(address, "/many/").text().matches("<a href=\"file-").count() as u64, toy::MANY);
    server.stop();
}

#[test]
fn a_member_that_cannot_be_read_costs_no_other_its_line() {
    let (server, address, _) = serve_toy();
    let json = get(address, "/?json").json();
    let entries = json.as_array().unwrap();
    let size = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap()["size"].as_u64();
    assert_eq!((size("hello.txt"), size("lengthless.bin"), size("big.u64")), (Some(6), None, Some(toy::BIG)));
    assert!(!entries.iter().any(|entry| entry["name"] == "not/a/name"));
    assert!(get(address, "/").text().contains("cannot be read"));
    assert!(get(address, "/.tilefs/errors.txt").text().contains("not/a/name"));
    let refused = get(address, "/unsupported/");
    assert!(refused.status == 500 && refused.text().contains("format version 99"), "{refused:?}");
    server.stop();
}

#[test]
fn a_folder_that_cannot_be_listed_is_an_error() {
    let (server, address, _) = serve_toy();
    for (target, headers) in [("/unlistable/", &[][..]), ("/unlistable/", &["Accept: */*"]), ("/unlistable/?json", &[])]
    {
        let refused = ask(address, "GET", target, headers);
        assert!(refused.status == 500 && refused.text().contains("the names end early"), "{refused:?}");
    }
    let page = ask(address, "GET", "/unlistable/", &["Accept: text/html"]);
    assert_eq!((page.status, page.is_cut, page.header("content-type")), (500, false, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(text.contains("<h1>This cannot be shown</h1>") && text.contains("the names end early"), "{text}");
    assert!(text.contains("<a href=\"../\">all that is here</a>") && text.ends_with("</html>\n"), "{text}");
    server.stop();
}

/// Programs that look for links in a page take every URL in its source for one.
#[test]
fn a_page_has_no_urls_but_its_links() {
    let experiment = tilefs_fixtures::corpus().join("real/pbmc_soma");
    for (array, target) in
        [(demo(), "/"), (demo(), "/slice/0..1,0..1/"), (experiment.clone(), "/"), (experiment, "/obs/")]
    {
        let server = Program::start(&array, &[]);
        let page = get(server.address, target).text();
        let has_commands = page.contains("<h2>Commands</h2>") && page.contains("http&#58;//");
        assert!(has_commands && !page.contains("http:"), "{page}");
    }
}

/// A program that wants an overview of very many members need not list them all.
#[test]
fn a_listing_has_as_many_members_as_are_wanted_spread_evenly() {
    let server = Program::start(&demo(), &[]);
    let names = |target: &str| -> Vec<String> {
        let listed = get(server.address, target).json();
        listed.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = names("/?json");
    for most in 0..=all.len() + 1 {
        let some = names(&format!("/?json&most={most}"));
        assert_eq!(some.len(), most.min(all.len()));
        let places: Vec<usize> = some.iter().map(|name| all.iter().position(|one| one == name).unwrap()).collect();
        let gaps: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            places.first().is_none_or(|first| *first == 0) && gaps.iter().all(|gap| *gap <= all.len().div_ceil(most))
        );
    }
    assert_eq!(names("/?json&most=x"), all);
}

/// The page names a program that reads all of a group only if there is one.
#[test]
fn a_page_suggests_programs_that_read_the_folder() {
    let experiment = tilefs_fixtures::corpus().join("real/pbmc_soma");
    let variants = tilefs_fixtures::fixtures().join("variants/v4");
    for (array, target, suggested, others) in [
        (demo(), "/", "xarray.open_zarr(&quot;http&#58;//localhost/zarr&quot;)", "anndata"),
        (experiment.clone(), "/", "anndata.read_zarr(&quot;http&#58;//localhost/zarr&quot;)", "xarray"),
        (experiment.clone(), "/obs/", "read_elem(zarr.open(&quot;http&#58;//localhost/obs/zarr&quot;", "xarray"),
        (experiment, "/ms/", "curl", "open_zarr"),
        (variants, "/", "curl", "open_zarr"),
    ] {
        let server = Program::start(&array, &[]);
        let page = get(server.address, target).text();
        let commands = page.split("<h2>Commands</h2>").nth(1).unwrap().split("</pre>").next().unwrap();
        assert!(commands.contains(suggested) && !commands.contains(others), "{}: {commands}", array.display());
    }
}

/// Each link of the trail repeats the names before it.
#[test]
fn a_long_path_has_a_short_page() {
    let (server, address, _) = serve_toy();
    let path = "/slice/7".to_owned();
    let short = get(address, &format!("{path}/")).text();
    assert!(short.contains("<a href=\"/slice/\">slice</a> / 7"), "{short}");
    let long = get(address, &format!("/slice/{}7/", "0".repeat(14_000)));
    assert!(long.status == 200 && long.body.len() < 100_000, "{}", long.body.len());
    server.stop();
}

/// Names of members can be any file names.
#[test]
fn names_are_escaped_in_links_and_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<script>alert('x')<&\"#?%41 ü";
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let status = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
        assert!(status.unwrap().success());
    };
    let array = folder.path().join(name);
    fs::create_dir_all(&array).unwrap();
    copy(&demo().join("."), &array);
    let server = Program::start(folder.path(), &[]);
    let json = get(server.address, "/?json").json();
    let shown = json[json.as_array().unwrap().iter().position(|entry| entry["type"] == "directory").unwrap()]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let html = get(server.address, "/");
    assert!(!html.text().contains("<script>alert") && !html.text().contains(name));
    let policy = html.header("content-security-policy").to_owned();
    assert!(policy.starts_with("default-src '") && !policy.contains("script-src 'unsafe"), "{policy}");
    let link = html
        .text()
        .split("<a href=\"")
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .find(|link| link.contains("script"));
    let link = link.unwrap();
    assert_eq!(get(server.address, &format!("/{link}temp.f32")).body.len(), 80_000, "{shown}: {link}");
    let inner = get(server.address, &format!("/{link}"));
    assert!(!inner.text().contains("<script>alert"), "{}", inner.text());
}
