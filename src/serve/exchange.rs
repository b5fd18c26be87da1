//! A request and its reply in the HTTP library's types: who may read, which methods exist, and the headers of all
//! replies.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONNECTION, HeaderName, REFERRER_POLICY, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tilefs_reader::threads::cancellation::Token;
use tokio::time::timeout;

use super::access::{Access, Denied};
use super::answer::{Answer, Question, answer};
use super::body::{CancelOnDrop, ReplyBody};
use super::connections::{Busy, Connection};
use super::site::Site;
use super::workers::Workers;

/// The supported methods.
const METHODS: &str = "GET, HEAD, OPTIONS, PROPFIND";

/// Maximum size of the body of a PROPFIND.
const MAX_BODY: usize = 16 << 10;

/// The state that all requests of a server share.
pub struct Service {
    pub site: Arc<Site>,
    pub workers: Arc<Workers>,
    pub access: Access,
    /// The origin whose pages may read, or `*`.
    pub cors: Option<String>,
    /// How long a client may take to send the head of a request or its body, and how long it may receive nothing of a
    /// reply.
    pub client_timeout: Duration,
}

impl Service {
    /// Replies to a request of a connection.
    ///
    /// # Errors
    /// None: each failure has a status.
    pub async fn reply(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Result<Response<ReplyBody>, Infallible> {
        let busy = connection.begin();
        self.site.counts.request(request.method());
        let cancel = CancelOnDrop(Token::new());
        let has_unread_body = !request.body().is_end_stream() && request.method().as_str() != "PROPFIND";
        let answer = self.answer(request, &cancel).await;
        let answer = if has_unread_body {
            // The body is not read, so the next request on this connection could not be found.
            answer.with(CONNECTION, "close")
        } else {
            answer
        };
        Ok(self.response(answer, cancel, busy))
    }

    async fn answer(&self, request: Request<Incoming>, cancel: &CancelOnDrop) -> Answer {
        let (head, body) = request.into_parts();
        // Browsers first ask whether they may send a request (a preflight), without the token that the request will
        // have.
        if head.method == Method::OPTIONS {
            let answer = Answer::empty(StatusCode::NO_CONTENT).with(ALLOW, METHODS);
            return answer
                .with(HeaderName::from_static("dav"), "1")
                .with(HeaderName::from_static("ms-author-via"), "DAV");
        }
        if let Err(denied) = self.access.check(&head.headers, head.uri.query()) {
            self.site.counts.denied();
            return refuse(denied);
        }
        let body = match head.method.as_str() {
            "GET" | "HEAD" => Bytes::new(),
            "PROPFIND" => match timeout(self.client_timeout, read_all(body)).await {
                Ok(Some(body)) => body,
                Ok(None) => return Answer::line(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or was cut off"),
                Err(_) => return Answer::line(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
            },
            _ => {
                let answer = Answer::line(StatusCode::METHOD_NOT_ALLOWED, "nothing here can be changed");
                return answer.with(ALLOW, METHODS);
            }
        };
        let question = Question {
            path: head.uri.path().to_owned(),
            token: self.access.token_in(head.uri.query()),
            query: head.uri.query().map(str::to_owned),
            method: head.method,
            headers: head.headers,
            body,
        };
        let site = Arc::clone(&self.site);
        let answered = self.workers.run(cancel.0.clone(), move || answer(&site, &question));
        let failed = || Answer::line(StatusCode::SERVICE_UNAVAILABLE, "no thread could answer; the log says why");
        answered.await.unwrap_or_else(|_| failed())
    }

    fn response(&self, answer: Answer, cancel: CancelOnDrop, busy: Busy) -> Response<ReplyBody> {
        let answer = answer.with(X_CONTENT_TYPE_OPTIONS, "nosniff").with(REFERRER_POLICY, "no-referrer");
        let answer = match &self.cors {
            None => answer,
            Some(origin) => share(answer, origin),
        };
        let Answer { status, headers, first, length, rest } = answer;
        let body = ReplyBody::new(first, length, rest, &self.workers, cancel, &self.site.counts, busy);
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

fn refuse(denied: Denied) -> Answer {
    match denied {
        Denied::Token => {
            let answer = Answer::line(StatusCode::UNAUTHORIZED, "this server needs its token");
            // Browsers and file managers ask for a password, which is the token.
            answer.with(WWW_AUTHENTICATE, "Basic realm=\"tilefs\", charset=\"UTF-8\"")
        }
        Denied::Host => Answer::line(
            StatusCode::MISDIRECTED_REQUEST,
            "this server is for this machine: use the host localhost or 127.0.0.1, or start it with --token",
        ),
    }
}

/// Lets pages of an origin read the answer.
fn share(answer: Answer, origin: &str) -> Answer {
    let answer = answer
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, origin)
        .with(ACCESS_CONTROL_ALLOW_METHODS, METHODS)
        .with(
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Range, Depth, Content-Type, If-Match, If-None-Match, If-Range",
        )
        .with(ACCESS_CONTROL_EXPOSE_HEADERS, "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified")
        .with(ACCESS_CONTROL_MAX_AGE, "86400");
    match origin {
        "*" => answer,
        _ => answer.also(VARY, "Origin"),
    }
}

/// Returns a short body; `None` if it is long or ends early.
async fn read_all(mut body: Incoming) -> Option<Bytes> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        if let Some(data) = frame.ok()?.data_ref() {
            if bytes.len() + data.len() > MAX_BODY {
                return None;
            }
            bytes.extend_from_slice(data);
        }
    }
    Some(bytes.into())
}
