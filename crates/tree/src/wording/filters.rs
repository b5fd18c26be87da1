//! Filters with their options, for people and for programs. Pipelines are in the order in which a writer applies the
//! filters.

use serde_json::{Map, Value};
use tilefs_format::pipeline::{Filter, OptionValue, Pipeline};

/// Returns `ZSTD(level=7)`, `BYTESHUFFLE`.
pub fn filter_text(filter: &Filter) -> String {
    let options: Vec<String> = options(filter)
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        })
        .collect();
    match options.is_empty() {
        true => filter.name().into_owned(),
        false => format!("{}({})", filter.name(), options.join(", ")),
    }
}

/// Returns `{"name": "ZSTD", "level": 7}`.
pub fn filter_json(filter: &Filter) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), filter.name().into());
    object.extend(options(filter).into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(object)
}

/// Returns a whole pipeline: `BYTESHUFFLE, ZSTD(level=7)`; `none` if it is empty.
pub fn pipeline_text(pipeline: &Pipeline) -> String {
    match pipeline.filters.as_slice() {
        [] => "none".to_owned(),
        filters => filters.iter().map(filter_text).collect::<Vec<_>>().join(", "),
    }
}

/// Returns a list of filters.
pub fn pipeline_json(pipeline: &Pipeline) -> Value {
    pipeline.filters.iter().map(filter_json).collect()
}

fn options(filter: &Filter) -> Vec<(&'static str, Value)> {
    let value = |value| match value {
        OptionValue::Signed(value) => value.into(),
        OptionValue::Unsigned(value) => value.into(),
        OptionValue::Float(value) => number(value),
        OptionValue::Flag(value) => value.into(),
        OptionValue::Name(name) => name.into(),
    };
    filter.options().into_iter().map(|(name, option)| (name, value(option))).collect()
}

/// JSON cannot represent non-finite numbers.
fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;
    use tilefs_format::pipeline::WebpFormat;

    use super::*;

    #[test]
    fn options_are_named() {
        for (filter, text, json) in [
            (Filter::Byteshuffle, "BYTESHUFFLE", r#"{"name":"BYTESHUFFLE"}"#),
            (Filter::Unknown { number: 20 }, "type 20", r#"{"name":"type 20"}"#),
            (Filter::Zstd { level: -1 }, "ZSTD(level=-1)", r#"{"name":"ZSTD","level":-1}"#),
            (
                Filter::Delta { level: -1, reinterpret_datatype: Some(Datatype::Int32) },
                "DELTA(level=-1, reinterpret_datatype=INT32)",
                r#"{"name":"DELTA","level":-1,"reinterpret_datatype":"INT32"}"#,
            ),
            (
                Filter::ScaleFloat { scale: 0.01, offset: f64::NAN, byte_width: 4 },
                "SCALE_FLOAT(scale=0.01, offset=NaN, byte_width=4)",
                r#"{"name":"SCALE_FLOAT","scale":0.01,"offset":"NaN","byte_width":4}"#,
            ),
            (
                Filter::Webp { quality: 90.0, format: WebpFormat::Rgba, lossless: false },
                "WEBP(quality=90.0, format=RGBA, lossless=false)",
                r#"{"name":"WEBP","quality":90.0,"format":"RGBA","lossless":false}"#,
            ),
        ] {
            assert_eq!(filter_text(&filter), text);
            assert_eq!(filter_json(&filter).to_string(), json);
        }
        let filters = vec![Filter::Byteshuffle, Filter::Zstd { level: 7 }];
        assert_eq!(pipeline_text(&Pipeline { max_chunk_size: 0, filters }), "BYTESHUFFLE, ZSTD(level=7)");
        assert_eq!(pipeline_text(&Pipeline::default()), "none");
    }
}
