//! A minimal S3 server of arrays of any size, for benchmarks. It stores no bytes: it computes them from the object's
//! key and the requested range.
//!
//! usage: cargo run --release --example generated -- [--port PORT] [--latency MILLISECONDS]
//!        cargo run --release --example generated -- --write FOLDER ARRAY...
//!
//! The first form prints the port that it listens on. Any name in any bucket is an array: `s3://any/appended-1e9`,
//! `s3://any/overlapping-1e8-f20`, `s3://any/table-1e11-consolidated`; see [`Array::named`]. Each answer takes
//! MILLISECONDS. The server exits at the end of its standard input; with `--port`, it runs until it is killed. `GET
//! /-/statistics` returns the number of requests, the bytes of the answers, and the number of steps: the length of the
//! longest series of requests of which each began after the one before was answered. It also resets these counts.
//!
//! The second form writes the objects of arrays to files, to read them without a server.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

mod requests;

use requests::{Statistics, answer, error_response};
use support::generated::array::Array;
use support::http::Message;

/// The state that all connections share.
struct Server {
    latency: Duration,
    arrays: Mutex<HashMap<String, Arc<Array>>>,
    statistics: Mutex<Statistics>,
}

impl Server {
    fn array(&self, name: &str) -> Result<Arc<Array>, String> {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(array) = arrays.get(name) {
            return Ok(array.clone());
        }
        let array = Arc::new(Array::named(name)?);
        arrays.insert(name.to_owned(), array.clone());
        Ok(array)
    }

    /// Answers the requests of one connection.
    fn serve(&self, mut client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut requests = BufReader::new(client.try_clone()?);
        while let Some(request) = Message::read(&mut requests, true)? {
            let statistics = || self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
            if request.second() == "/-/statistics" {
                let mut taken = std::mem::take(&mut *statistics());
                let steps = taken.steps();
                let text = format!("{} {} {steps}\n", taken.requests, taken.bytes);
                let answer = Message::new("HTTP/1.1 200 OK", text.as_bytes());
                client.write_all(&[answer.head(), answer.body].concat())?;
                continue;
            }
            let start = Instant::now();
            let answer = answer(|name| self.array(name), &request)
                .unwrap_or_else(|reason| error_response("404 Not Found", "NoSuchKey", &reason));
            thread::sleep(self.latency.saturating_sub(start.elapsed()));
            let is_head = request.method() == "HEAD";
            statistics().count(start, if is_head { 0 } else { answer.body.len() });
            client.write_all(&answer.head())?;
            if !is_head {
                client.write_all(&answer.body)?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, folder, names @ ..] = arguments.as_slice()
        && option == "--write"
    {
        return names.iter().try_for_each(|name| write(&Path::new(folder).join(name), &Array::named(name)?));
    }
    let (mut port, mut latency) = (0, Duration::ZERO);
    for option in arguments.chunks(2) {
        match option {
            [name, value] if name == "--port" => port = value.parse::<u16>()?,
            [name, value] if name == "--latency" => latency = Duration::from_millis(value.parse()?),
            _ => return Err("usage: generated [--port PORT] [--latency MILLISECONDS] | --write FOLDER ARRAY...".into()),
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("{}", listener.local_addr()?.port());
    if port == 0 {
        thread::spawn(|| {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    let server = Arc::new(Server { latency, arrays: Mutex::default(), statistics: Mutex::default() });
    for client in listener.incoming() {
        let (client, server) = (client?, server.clone());
        thread::spawn(move || server.serve(&client));
    }
    Ok(())
}

/// Writes all objects of an array to a folder.
fn write(folder: &Path, array: &Array) -> Result<(), Box<dyn Error>> {
    for object in (0..array.objects()).map(|number| array.object(number)) {
        let path = folder.join(array.key(object));
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, array.read(object, 0..array.len(object)))?;
    }
    Ok(())
}
