//! Stores with endless answers, redirects, or foreign objects: each causes an error in bounded time and memory, and
//! gets no information that it must not have.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::{Fault, Proxy};
use super::servers::S3;
use super::{SECRET, fixtures, program, skip, text, tilefs};
use support::http::Message;

/// A server whose answers are written by the test.
pub struct Hostile {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Message>>>,
    /// Bytes that clients have received.
    sent: Arc<AtomicU64>,
}

impl Hostile {
    pub fn start(answer: impl Fn(&Message, u64, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, sent) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
        let hostile = Hostile { address, asked: Arc::clone(&asked), sent: Arc::clone(&sent) };
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, asked, sent) = (Arc::clone(&answer), Arc::clone(&asked), Arc::clone(&sent));
                thread::spawn(move || {
                    let mut requests = BufReader::new(stream.try_clone().unwrap());
                    let mut counted = Counted { stream, sent };
                    // A client that disconnects ends its connection.
                    while let Ok(Some(request)) = Message::read(&mut requests, true) {
                        let number = {
                            let mut asked = asked.lock().unwrap();
                            asked.push(request.clone());
                            asked.len() as u64
                        };
                        if answer(&request, number, &mut counted).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        hostile
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

struct Counted {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

pub fn send(out: &mut dyn Write, status: &str, headers: &str, body: &str) -> io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

/// Returns a page of a listing, which may announce another one.
fn page(keys: &[String], next: Option<&str>) -> String {
    let object = |key: &String| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>1</Size></Contents>"
        )
    };
    let next = next.map_or(String::new(), |next| {
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
    });
    let objects: String = keys.iter().map(object).collect();
    format!("<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name>{next}{objects}</ListBucketResult>")
}

/// Runs `tilefs info` on an array in such a store. Returns the error, and the peak memory in KiB.
fn fails(hostile: &Hostile, seconds: u64, most_seconds: u64) -> (String, u64) {
    let begin = Instant::now();
    let mut command = program();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET);
    command
        .env("AWS_SESSION_TOKEN", "secrettoken")
        .env("AWS_ENDPOINT_URL", hostile.url())
        .env("AWS_REGION", "us-east-1");
    let arguments = ["info", "s3://bucket/array", "--io-timeout", &seconds.to_string()];
    let child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let peak = Arc::new(AtomicU64::new(0));
    let watched = Arc::clone(&peak);
    let watch = thread::spawn(move || {
        while let Ok(text) = std::fs::read_to_string(&status) {
            let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) else { return };
            let kib = line.trim().trim_end_matches(" kB").parse();
            watched.fetch_max(kib.expect("a number of KiB"), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(5));
        }
    });
    let output = child.wait_with_output().unwrap();
    watch.join().unwrap();
    assert!(peak.load(Ordering::Relaxed) > 0, "its memory was never seen");
    assert!(begin.elapsed() < Duration::from_secs(most_seconds), "it took {:?}", begin.elapsed());
    let error = text(&output.stderr);
    assert!(!output.status.success(), "{error}");
    assert_eq!(error.lines().filter(|line| line.contains("tilefs: ")).count(), 1, "{error}");
    (error, peak.load(Ordering::Relaxed))
}

/// Writes until the client disconnects.
fn endless(out: &mut dyn Write, status: &str, part: &str) -> io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    loop {
        write!(out, "{:x}\r\n{part}\r\n", part.len())?;
    }
}

#[test]
fn of_an_error_without_end_the_beginning_is_read() {
    let part = "x".repeat(64 << 10);
    let hostile = Hostile::start(move |_, _, out| endless(out, "403 Forbidden", &part));
    let (error, peak) = fails(&hostile, 4, 10);
    assert!(error.contains("403"), "{error}");
    assert!(peak < 100 << 10, "{peak} KiB");
    // Includes what is in the buffers of sockets.
    let each = hostile.sent.load(Ordering::Relaxed) / hostile.requests() as u64;
    assert!(each < 16 << 20, "{each} bytes");
}

#[test]
fn a_listing_without_end_is_an_error() {
    let part = format!("<ListBucketResult>{}", "<Contents>".repeat(8 << 10));
    let hostile = Hostile::start(move |_, _, out| endless(out, "200 OK", &part));
    let (error, peak) = fails(&hostile, 4, 20);
    assert!(error.contains("longer than"), "{error}");
    assert!(peak < 200 << 10, "{peak} KiB");
}

#[test]
fn a_listing_that_repeats_itself_or_never_ends_is_an_error() {
    let same = Hostile::start(|_, _, out| send(out, "200 OK", "", &page(&["array/x".to_owned()], Some("again"))));
    let (error, _) = fails(&same, 20, 15);
    assert!(error.contains("repeats an answer"), "{error}");
    assert!(same.requests() < 20, "{}", same.requests());

    let empty = Hostile::start(|_, number, out| send(out, "200 OK", "", &page(&[], Some(&number.to_string()))));
    let (error, _) = fails(&empty, 20, 15);
    assert!(error.contains("no new name"), "{error}");

    // Each page has a new name, and each is a little later.
    let ever_new = Hostile::start(|_, number, out| {
        thread::sleep(Duration::from_millis(2));
        send(out, "200 OK", "", &page(&[format!("array/{number:09}")], Some(&number.to_string())))
    });
    let (error, peak) = fails(&ever_new, 1, 40);
    assert!(error.contains("took too long") || error.contains("no end"), "{error}");
    assert!(peak < 200 << 10, "{peak} KiB");
}

#[test]
fn what_is_no_whole_listing_is_an_error() {
    let cut = page(&["array/x".to_owned()], None).replace("</ListBucketResult>", "");
    let without_token = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>".to_owned();
    for (answer, part) in [
        ("<html><body>Please sign in.</body></html>".to_owned(), "is not a listing"),
        ("<Error><Code>InternalError</Code></Error>".to_owned(), "is not a listing"),
        (cut, "ends early"),
        (without_token, "not how to ask for them"),
    ] {
        let hostile = Hostile::start(move |_, _, out| send(out, "200 OK", "", &answer));
        let (error, _) = fails(&hostile, 2, 20);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_byte_a_second_is_no_answer() {
    let slow = Hostile::start(|_, _, out| {
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")?;
        loop {
            out.write_all(b" ")?;
            thread::sleep(Duration::from_secs(1));
        }
    });
    let (error, _) = fails(&slow, 3, 12);
    assert!(error.contains("no answer in time"), "{error}");
}

#[test]
fn no_redirect_is_followed() {
    for status in
        ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let elsewhere = Hostile::start(|_, _, out| send(out, "200 OK", "", &page(&[], None)));
        let target = elsewhere.url();
        let hostile = Hostile::start(move |request, _, out| {
            let location = format!("Location: {target}{}\r\n", request.second());
            send(out, status, &location, "")
        });
        let (error, _) = fails(&hostile, 4, 15);
        assert_eq!(elsewhere.requests(), 0, "{status}: {:#?}", elsewhere.asked.lock().unwrap());
        assert!(hostile.requests() > 0 && !error.contains(SECRET) && !error.contains("secrettoken"), "{error}");
        assert!(hostile.asked.lock().unwrap().iter().all(|asked| asked.header("Referer").is_none()));
    }
}

/// A SAS token is part of the requested address: whoever gets the address has the access that the token grants.
#[test]
fn no_redirect_takes_a_token_of_azure_elsewhere() {
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let elsewhere = Hostile::start(|_, _, out| send(out, "200 OK", "", ""));
        let target = elsewhere.url();
        let hostile = Hostile::start(move |_, _, out| send(out, status, &format!("Location: {target}/array\r\n"), ""));
        let mut command = program();
        command.env("AZURE_STORAGE_ACCOUNT", "account").env("AZURE_BLOB_ENDPOINT", hostile.url());
        command.env("AZURE_STORAGE_SAS_TOKEN", "sv=2024-05-04&sp=rl&sig=secretsignature");
        let output = command.args(["info", "azure://container/array", "--io-timeout", "4"]).output().unwrap();
        assert!(!output.status.success(), "{status}");
        assert_eq!(elsewhere.requests(), 0, "{status}: {:#?}", elsewhere.asked.lock().unwrap());
        let asked = hostile.asked.lock().unwrap();
        assert!(asked.iter().any(|asked| asked.second().contains("sig=secretsignature")), "{asked:?}");
        assert!(asked.iter().all(|asked| asked.header("Referer").is_none()), "{asked:?}");
        assert!(!text(&output.stderr).contains("secretsignature"), "{}", text(&output.stderr));
    }
}

/// Foreign objects beside an array or in its folder do no harm, but those that may be part of it cause an error.
#[test]
fn objects_that_cannot_be_named_are_left_out_unless_they_may_be_the_array_s() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("odd");
    server.put_folder(&fixtures().join("demo"), "odd/demo");
    let expected = tilefs(&format!("http://{}", server.address()), &["cat", "s3://odd/demo", "temp.f32"]);
    assert!(expected.status.success(), "{}", text(&expected.stderr));
    // The test server may normalize such names itself, so the listing is changed on its way to the client.
    let inner = server.address();
    let with = |odd: &'static [&'static str]| {
        Hostile::start(move |request, _, out| {
            let mut answer = request.clone().send(inner)?;
            if request.second().contains("list-type=2") {
                let objects = page(&odd.iter().map(|&key| key.to_owned()).collect::<Vec<_>>(), None);
                let (start, end) = (objects.find("<Contents>").unwrap(), objects.rfind("</ListBucketResult>").unwrap());
                let folders = "<CommonPrefixes><Prefix>demo//</Prefix></CommonPrefixes>";
                let more = format!("{}{folders}</ListBucketResult>", &objects[start..end]);
                answer.body = text(&answer.body).replace("</ListBucketResult>", &more).into_bytes();
                answer.set("Content-Length", &answer.body.len().to_string());
            }
            answer.set("Connection", "keep-alive");
            out.write_all(&answer.head())?;
            out.write_all(&answer.body)
        })
    };
    let others = with(&["demo/x//y", "demo/x/../y", "demo/notes&#x1;", "demo/ta&#9;b/z", "other/__schema//x"]);
    let output = tilefs(&others.url(), &["cat", "s3://odd/demo", "temp.f32"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, expected.stdout);
    for own in [&["demo/__fragments/__9_9_&#x1;/a0.tdb"][..], &["demo/__schema/x//y"], &["demo/__commits/../y"]] {
        let output = tilefs(&with(own).url(), &["cat", "s3://odd/demo", "temp.f32"]);
        let error = text(&output.stderr);
        assert!(!output.status.success() && error.contains("cannot be asked for"), "{own:?}: {error}");
    }
}

#[test]
fn a_command_for_credentials_that_hangs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let quiet = Hostile::start(|_, _, out| send(out, "200 OK", "", &page(&[], None)));
    for command in ["sleep 1000", "yes"] {
        std::fs::write(&config, format!("[default]\ncredential_process = {command}\n")).unwrap();
        let begin = Instant::now();
        let mut run = program();
        run.env("AWS_CONFIG_FILE", &config).env("AWS_ENDPOINT_URL", quiet.url()).env("AWS_REGION", "us-east-1");
        let output = run.args(["info", "s3://bucket/array", "--io-timeout", "2"]).output().unwrap();
        assert!(!output.status.success());
        assert!(begin.elapsed() < Duration::from_secs(12), "{command}: {:?}", begin.elapsed());
        assert_eq!(quiet.requests(), 0, "nothing is asked without credentials");
    }
}

/// A group with one local member and others in a bucket, written by libtiledb.
const GROUP: &str = r#"
import shutil, sys, tiledb
endpoint, demo, out = sys.argv[1:]
ctx = tiledb.Ctx({
    "vfs.s3.endpoint_override": endpoint.split("//")[1], "vfs.s3.scheme": "http", "vfs.s3.region": "us-east-1",
    "vfs.s3.use_virtual_addressing": "false", "vfs.s3.aws_access_key_id": "AKIDEXAMPLE",
    "vfs.s3.aws_secret_access_key": "hunter2hunter2hunter2"})
tiledb.group_create(out, ctx=ctx)
shutil.copytree(demo, f"{out}/here")
with tiledb.Group(out, "w", ctx=ctx) as g:
    g.add("here", name="here", relative=True)
    for number in range(4):
        g.add(f"s3://hanging/far{number}", name=f"far{number}", relative=False)
"#;

/// A mount that is forcibly unmounted when dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-f", "-l"]).arg(&self.0).output();
    }
}

#[test]
fn a_store_that_hangs_holds_up_no_local_member() {
    if !skip::can_mount() {
        return;
    }
    let (Some(server), Some(python)) = (S3::get(), skip::python_with("tiledb")) else { return };
    server.make_bucket("hanging");
    (0..4).for_each(|number| server.put_folder(&fixtures().join("demo"), &format!("hanging/far{number}")));
    let folder = tempfile::tempdir().unwrap();
    let (group, mountpoint) = (folder.path().join("group"), folder.path().join("mnt"));
    let mut write = Command::new(python);
    let written = write.args(["-c", GROUP, &server.url()]).args([&fixtures().join("demo"), &group]).output().unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    proxy.fail(usize::MAX, Fault::Stall, |_| true);
    std::fs::create_dir(&mountpoint).unwrap();
    let mounted = Mounted(mountpoint.clone());
    let run = |arguments: &[&str]| {
        let output = tilefs(&proxy.url(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    };
    let [group, mnt] = [&group, &mountpoint].map(|path| path.display().to_string());
    run(&["mount", "--follow-links", "--threads", "2", &group, &mnt]);
    // More requests than threads, each for another file.
    let far = |number: usize| {
        let path = mountpoint.join(format!("far{}", number % 4)).join(format!("dims{number}"));
        Command::new("stat").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut readers: Vec<_> = (0..150).map(far).collect();
    // By now some requests have failed because too many wait.
    thread::sleep(Duration::from_secs(6));
    let waiting = readers.iter_mut().filter_map(|reader| reader.try_wait().unwrap().is_none().then_some(())).count();
    assert!(waiting > 20, "the store does not hang: {waiting}");
    for file in ["README.txt", ".group/meta.json", "here/temp.f32", "here/README.txt", "here/slice/3,4/npy/temp.npy"] {
        let begin = Instant::now();
        assert!(!std::fs::read(mountpoint.join(file)).unwrap().is_empty(), "{file}");
        assert!(begin.elapsed() < Duration::from_secs(3), "{file}: {:?}", begin.elapsed());
    }
    readers.iter_mut().for_each(|reader| reader.kill().unwrap());
    let begin = Instant::now();
    for reader in &mut readers {
        reader.wait().unwrap();
    }
    assert!(begin.elapsed() < Duration::from_secs(8), "killed readers end after {:?}", begin.elapsed());
    let begin = Instant::now();
    run(&["umount", &mnt]);
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    drop(mounted);
}
