//! The values of a field as values of the type that the file's header gives the field. Stored values of another type,
//! and texts, are parsed in VCF's notation.

use tilefs_base::error::{Error, Result};

use super::typed::LEAST_INTEGER;
use crate::fields::{FieldValues, INTEGER_END, MISSING_FLOAT, MISSING_INTEGER};
use crate::line::{LineValue, MISSING, Placed};

/// Any number of this many decimal digits has 64 bits at most, and a float of 32 bits represents it exactly.
const SURE_DIGITS: usize = 18;
const DIGITS_OF_A_FLOAT: usize = 7;

/// The highest allele that fits into 32 bits together with the phase.
const MAX_ALLELE: i64 = (i32::MAX as i64 >> 1) - 1;

/// Appends the integers of a value to others. `ends` are the characters that VCF does not allow in a text, and `text` is
/// memory to be used again.
///
/// # Errors
/// Fails for values that are not integers of 32 bits, and for those that BCF reserves.
pub(super) fn push_integers(value: &LineValue<'_>, ends: &[u8], all: &mut Vec<i32>, text: &mut Vec<u8>) -> Result<()> {
    let mut push = |value: i64| {
        let found = i32::try_from(value).ok().filter(|&value| value >= LEAST_INTEGER);
        all.push(found.ok_or_else(|| wrong("value", value.to_string().as_bytes()))?);
        Ok(())
    };
    match value {
        LineValue::Stored(FieldValues::Integers(stored)) => {
            let stored = stored.iter().map(|bytes| i32::from_le_bytes(*bytes));
            for value in stored.take_while(|&value| value != INTEGER_END) {
                match value {
                    MISSING_INTEGER => all.push(MISSING_INTEGER),
                    LEAST_INTEGER.. => all.push(value),
                    _ => return Err(wrong("value", value.to_string().as_bytes())),
                }
            }
            Ok(())
        }
        LineValue::Placed(Placed::Numbers { numbers, is_float: false }) => {
            for number in numbers {
                match number {
                    None => all.push(MISSING_INTEGER),
                    Some(bytes) => match i32::from_le_bytes(*bytes) {
                        value @ LEAST_INTEGER.. => all.push(value),
                        value => return Err(wrong("value", value.to_string().as_bytes())),
                    },
                }
            }
            Ok(())
        }
        LineValue::Integers(numbers) => numbers.iter().try_for_each(|number| push(*number)),
        LineValue::Missing(count) => {
            all.resize(all.len() + (*count).max(1), MISSING_INTEGER);
            Ok(())
        }
        _ => parse(value, ends, integer, all, text),
    }
}

/// Like [`push_integers`], for the bits of floats.
///
/// # Errors
/// Fails for values that are not numbers.
pub(super) fn push_floats(value: &LineValue<'_>, ends: &[u8], all: &mut Vec<u32>, text: &mut Vec<u8>) -> Result<()> {
    match value {
        LineValue::Stored(values @ (FieldValues::Floats(_) | FieldValues::Integers(_))) => {
            let of_bytes = if matches!(values, FieldValues::Floats(_)) { float_of_bytes } else { float_of_integer };
            all.extend(values.each_number().into_iter().flatten().map(|number| number.map_or(MISSING_FLOAT, of_bytes)));
        }
        LineValue::Placed(Placed::Numbers { numbers, is_float }) => {
            let of_bytes = if *is_float { float_of_bytes } else { float_of_integer };
            all.extend(numbers.iter().map(|number| number.map_or(MISSING_FLOAT, of_bytes)));
        }
        LineValue::Integers(numbers) => all.extend(numbers.iter().map(|number| (*number as f32).to_bits())),
        LineValue::Floats(numbers) => all.extend(numbers.iter().map(|number| canonical_float(number.to_bits()))),
        LineValue::Missing(count) => all.resize(all.len() + (*count).max(1), MISSING_FLOAT),
        _ => return parse(value, ends, float, all, text),
    }
    Ok(())
}

/// Appends the alleles of a genotype to others: for each allele, twice its number plus 2 (0 if it is missing), plus 1 if
/// it is phased with the previous one.
///
/// # Errors
/// Fails for what is no genotype.
pub(super) fn push_genotype(value: &LineValue<'_>, all: &mut Vec<i32>, text: &mut Vec<u8>) -> Result<()> {
    let before = all.len();
    let mut push = |place: usize, allele: Option<i64>, is_phased: bool| {
        let phase = i32::from(is_phased && place > 0);
        all.push(match allele {
            None => phase,
            Some(allele) if (0..=MAX_ALLELE).contains(&allele) => (allele as i32 + 1) << 1 | phase,
            Some(allele) => return Err(wrong("allele", allele.to_string().as_bytes())),
        });
        Ok(())
    };
    match value {
        LineValue::Genotype(values @ FieldValues::Integers(_)) => {
            for (place, allele) in values.alleles().into_iter().flatten().enumerate() {
                let (allele, is_phased) = allele?;
                push(place, allele.map(i64::from), is_phased)?;
            }
        }
        LineValue::MergedGenotype { alleles, map } => {
            for (place, (allele, is_phased)) in alleles.iter().enumerate() {
                let number = allele.and_then(|allele| map.get(allele)).map(|&number| number as i64);
                push(place, number, *is_phased && allele.is_some())?;
            }
        }
        LineValue::MissingGenotype(ploidy) => all.resize(before + (*ploidy).max(1), 0),
        _ => {
            text.clear();
            if value.append(b":", text)? {
                genotype(text, all)?;
            }
        }
    }
    if all.len() == before {
        all.push(0);
    }
    Ok(())
}

/// Returns the bits of a float as BCF has them, which do not distinguish numbers that are none.
pub(super) fn canonical_float(bits: u32) -> u32 {
    if bits != MISSING_FLOAT && f32::from_bits(bits).is_nan() { f32::NAN.to_bits() } else { bits }
}

fn float_of_bytes(bytes: [u8; 4]) -> u32 {
    canonical_float(u32::from_le_bytes(bytes))
}

fn float_of_integer(bytes: [u8; 4]) -> u32 {
    (i32::from_le_bytes(bytes) as f32).to_bits()
}

/// Appends the values of a list in VCF's notation to others.
fn parse<T>(
    value: &LineValue<'_>,
    ends: &[u8],
    parse_one: impl Fn(&[u8]) -> Option<T>,
    all: &mut Vec<T>,
    text: &mut Vec<u8>,
) -> Result<()> {
    text.clear();
    if value.append(ends, text)? {
        for one in text.split(|&byte| byte == b',') {
            all.push(parse_one(one).ok_or_else(|| wrong("value", one))?);
        }
    }
    Ok(())
}

/// Returns an integer, or the number that stands for a missing value.
fn integer(text: &[u8]) -> Option<i32> {
    match text {
        MISSING => Some(MISSING_INTEGER),
        _ => number(text).and_then(|number| i32::try_from(number).ok()).filter(|&number| number >= LEAST_INTEGER),
    }
}

/// Returns the bits of a float, or the bits that stand for a missing value.
fn float(text: &[u8]) -> Option<u32> {
    match text {
        MISSING => Some(MISSING_FLOAT),
        // Floats represent these exactly.
        _ if text.len() <= DIGITS_OF_A_FLOAT && text.iter().all(u8::is_ascii_digit) => {
            number(text).map(|number| (number as f32).to_bits())
        }
        _ => str::from_utf8(text).ok()?.parse::<f32>().ok().map(f32::to_bits),
    }
}

/// Returns a number.
fn number(text: &[u8]) -> Option<i64> {
    match text.len() {
        // Most numbers are short and have no sign.
        1..=SURE_DIGITS if text.iter().all(u8::is_ascii_digit) => {
            Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
        }
        _ => str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Appends the alleles of a genotype to others.
fn genotype(text: &[u8], alleles: &mut Vec<i32>) -> Result<()> {
    let (mut rest, mut phase) = (text, 0);
    loop {
        let end = rest.iter().position(|byte| b"/|".contains(byte)).unwrap_or(rest.len());
        let (allele, behind) = rest.split_at(end);
        alleles.push(match allele {
            MISSING => phase,
            _ => {
                let number = number(allele).filter(|number| (0..=MAX_ALLELE).contains(number));
                let number = number.ok_or_else(|| wrong("genotype", text))?;
                // At most 2^31 - 1.
                (number as i32 + 1) << 1 | phase
            }
        });
        let Some((separator, behind)) = behind.split_first() else { return Ok(()) };
        phase = i32::from(*separator == b'|');
        rest = behind;
    }
}

/// Returns the error for a value that BCF cannot represent in a field of its type.
fn wrong(what: &str, text: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(text.get(..40).unwrap_or(text));
    Error::unsupported(format!("the {what} {shown} in BCF, for a field of its type; the .vcf has it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genotypes_are_alleles_with_their_phase() {
        let genotype = |text: &[u8]| {
            let mut alleles = Vec::new();
            push_genotype(&LineValue::Genotype(FieldValues::Text(text)), &mut alleles, &mut Vec::new())
                .map(|()| alleles)
        };
        assert_eq!(genotype(b"0/1").unwrap(), [2, 4]);
        assert_eq!(genotype(b"1|.|0/3").unwrap(), [4, 1, 3, 8]);
        assert_eq!(genotype(b".").unwrap(), [0]);
        assert_eq!(genotype(b"").unwrap(), [0]);
        assert_eq!(genotype(b"1073741822").unwrap(), [i32::MAX - 1]);
        for wrong in ["0/", "a", "-1", "1073741823", "0,1"] {
            assert!(genotype(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let merged = |alleles: &[(Option<usize>, bool)], map: &[usize]| {
            let mut all = Vec::new();
            push_genotype(&LineValue::MergedGenotype { alleles, map }, &mut all, &mut Vec::new()).map(|()| all)
        };
        assert_eq!(merged(&[(Some(0), true), (Some(1), true), (None, true)], &[0, 3]).unwrap(), [2, 9, 0]);
        assert_eq!(merged(&[], &[0]).unwrap(), [0]);
        assert!(merged(&[(Some(0), false)], &[1 << 30]).is_err());
    }

    #[test]
    fn values_of_another_type_are_those_of_their_text() {
        let integers = [7, i32::MIN, -3, i32::MAX].map(i32::to_le_bytes);
        let floats = [7f32.to_bits(), MISSING_FLOAT, 0xffc0_0001].map(u32::to_le_bytes);
        let as_floats = |value: LineValue<'_>| {
            let mut all = Vec::new();
            push_floats(&value, b";", &mut all, &mut Vec::new()).map(|()| all)
        };
        let as_integers = |value: LineValue<'_>| {
            let mut all = Vec::new();
            push_integers(&value, b";", &mut all, &mut Vec::new()).map(|()| all)
        };
        let stored = |values| LineValue::Stored(values);
        let wanted = [7f32.to_bits(), MISSING_FLOAT, (-3f32).to_bits(), (i32::MAX as f32).to_bits()];
        assert_eq!(as_floats(stored(FieldValues::Integers(&integers))).unwrap(), wanted);
        assert_eq!(as_floats(stored(FieldValues::Text(b"7,.,-3,2147483647"))).unwrap(), wanted);
        assert_eq!(
            as_floats(stored(FieldValues::Floats(&floats))).unwrap(),
            [7f32.to_bits(), MISSING_FLOAT, f32::NAN.to_bits()]
        );
        assert_eq!(as_integers(stored(FieldValues::Integers(&integers))).unwrap(), [7, i32::MIN, -3, i32::MAX]);
        assert_eq!(as_integers(stored(FieldValues::Floats(&floats[..2]))).unwrap(), [7, i32::MIN]);
        assert_eq!(as_integers(LineValue::Missing(2)).unwrap(), [i32::MIN; 2]);
        assert_eq!(as_integers(stored(FieldValues::Text(b""))).unwrap(), [0; 0]);
        for wrong in [FieldValues::Floats(&floats), FieldValues::Text(b"1;2"), FieldValues::Text(b"1,")] {
            assert!(as_integers(stored(wrong)).is_err());
        }
        // Eight integers are reserved.
        let reserved = [(i32::MIN + 7).to_le_bytes()];
        assert!(as_integers(stored(FieldValues::Integers(&reserved))).is_err());
        assert!(as_integers(LineValue::Integers(vec![1 << 31])).is_err());
    }
}
