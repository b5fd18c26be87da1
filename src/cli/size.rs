//! Sizes in bytes as users type them: `512M`, `1GiB`, `65536`.

/// Parses a whole number of bytes with an optional binary suffix: K, M, G or T, each 1024 times the one before.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("write a size such as 512M or 1G, or a number of bytes".into()),
    };
    let number: u64 =
        number.parse().map_err(|_| "write a size such as 512M or 1G, or a number of bytes".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_binary() {
        assert_eq!(parse("512M"), Ok(512 << 20));
        assert_eq!(parse("1g"), Ok(1 << 30));
        assert_eq!(parse("64KiB"), Ok(64 << 10));
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("65537"), Ok(65537));
        for wrong in ["", "M", "1.5G", "-1", "1 G", "12Q", "99999999999999999999", "99999999T"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
