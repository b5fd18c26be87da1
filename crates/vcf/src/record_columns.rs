//! The alleles, the identifier and the filters of records as columns of a table.

use tilefs_base::error::Result;
use tilefs_export::column::computed::{Cells, Notation};

use super::columns::check_utf8;
use super::definitions::Filters;
use super::record::{allele_list, filter_numbers, id_text};

/// Appends the alleles of a record, given as stored: a list, the reference first.
///
/// # Errors
/// Fails unless the bytes are a text that a NUL ends, and no allele is empty.
pub fn push_alleles(stored: &[u8], notation: Notation, cells: &mut Cells) -> Result<()> {
    let alleles = allele_list(stored)?;
    match notation {
        Notation::Lists => {
            check_utf8(stored)?;
            cells.push_list(alleles.into_iter().map(Some));
        }
        Notation::Texts => cells.push(&alleles.join(&b',')),
    }
    Ok(())
}

/// Appends the identifier of a record, given as stored. A record without one has a dot.
///
/// # Errors
/// Fails unless the bytes are a text that a NUL ends, and not empty.
pub fn push_id(stored: &[u8], notation: Notation, cells: &mut Cells) -> Result<()> {
    let id = id_text(stored)?;
    if notation == Notation::Lists {
        check_utf8(id)?;
    }
    cells.push(id);
    Ok(())
}

/// Appends the names of a record's filters, given their numbers as stored; null for a record without filters.
///
/// # Errors
/// Fails unless the bytes are the numbers of existing filters.
pub fn push_filters(stored: &[u8], filters: &Filters, notation: Notation, cells: &mut Cells) -> Result<()> {
    let names = filter_numbers(stored)?.map(|number| filters.name(number)).collect::<Result<Vec<_>>>()?;
    match notation {
        _ if names.is_empty() => cells.push_null(),
        Notation::Lists => {
            names.iter().try_for_each(|name| check_utf8(name))?;
            cells.push_list(names.into_iter().map(Some));
        }
        Notation::Texts => cells.push(&names.join(&b';')),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tilefs_export::column::computed::CellKind;

    use super::super::definitions::Definitions;
    use super::*;

    #[test]
    fn stored_lists_lose_their_ends() {
        let mut found = Cells::new(CellKind::Texts);
        push_alleles(b"A,<DEL>\0", Notation::Lists, &mut found).unwrap();
        push_alleles(b"A,.\0", Notation::Lists, &mut found).unwrap();
        let mut wanted = Cells::new(CellKind::Texts);
        wanted.push_list(["A", "<DEL>"].map(Some).into_iter());
        wanted.push_list([Some("A")].into_iter());
        assert_eq!(found, wanted);
        let mut definitions = Definitions::default();
        definitions.add(b"##fileformat=VCFv4.2\n##FILTER=<ID=q10>\n").unwrap();
        let filters = &definitions.filters()[0];
        let mut found = Cells::new(CellKind::Texts);
        push_filters(&[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], filters, Notation::Lists, &mut found).unwrap();
        push_filters(&[0; 4], filters, Notation::Lists, &mut found).unwrap();
        let mut wanted = Cells::new(CellKind::Texts);
        wanted.push_list(["q10", "PASS"].map(Some).into_iter());
        wanted.push_null();
        assert_eq!(found, wanted);
        for wrong in [&[][..], &[1, 0, 0, 0], &[1, 0, 0, 0, 9, 0, 0, 0], &[0, 0, 0]] {
            assert!(push_filters(wrong, filters, Notation::Texts, &mut Cells::new(CellKind::Text)).is_err());
        }
        assert!(push_alleles(b"A", Notation::Lists, &mut Cells::new(CellKind::Texts)).is_err());
        for wrong in [&b",\0"[..], b"A,\0", b"A,,C\0"] {
            assert!(push_alleles(wrong, Notation::Texts, &mut Cells::new(CellKind::Text)).is_err());
        }
        for wrong in [&b""[..], b"\0"] {
            assert!(push_id(wrong, Notation::Lists, &mut Cells::new(CellKind::Text)).is_err());
        }
    }
}
