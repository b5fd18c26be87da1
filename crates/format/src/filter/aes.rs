//! AES-256-GCM, the encryption of arrays. It is the last filter of every pipeline of an encrypted array, and the
//! pipelines in schemas do not list it.
//!
//! ```text
//! metadata: the list of [`super::encoded_parts`]; per part also the nonce [12] and the tag [16]
//! ```

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use tilefs_base::error::{Error, Result};

use super::encoded_parts::EncodedPart;
use super::key::Key;
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use crate::datatype::Datatype;

const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Binds the filter. Encrypted bytes have the type `BLOB`.
pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    let key = input.key.ok_or_else(|| Error::key("the data is encrypted and no key was given"))?;
    Ok(input.parts(Cipher::new(key)).with_output(Datatype::Blob))
}

/// An expanded key for decryption; wiped from memory when dropped.
struct Cipher(Aes256Gcm);

impl DecodePart for Cipher {
    fn extra_bytes(&self) -> usize {
        NONCE_BYTES + TAG_BYTES
    }

    fn checks_empty_parts(&self) -> bool {
        true
    }

    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        self.decrypt(part.extra, part.encoded, part.out)
    }
}

impl Cipher {
    fn new(key: &Key) -> Self {
        Cipher(Aes256Gcm::new(key.bytes().into()))
    }

    /// Decrypts one part into `out`, which has the same length. `extra` is the rest of the part's entry after the
    /// lengths: nonce and tag. `out` is not changed unless the tag is right.
    fn decrypt(&self, extra: &[u8], encrypted: &[u8], out: &mut [u8]) -> Result<()> {
        let bad = || Error::damaged("bad entry of an encrypted part");
        let (nonce, tag) = extra.split_first_chunk::<NONCE_BYTES>().ok_or_else(bad)?;
        let tag: &[u8; TAG_BYTES] = tag.try_into().map_err(|_| bad())?;
        let lengths = (encrypted.len(), out.len());
        let buffer = InOutBuf::new(encrypted, out)
            .map_err(|_| Error::damaged(format!("an encrypted part of {} bytes for {} bytes", lengths.0, lengths.1)))?;
        self.0
            .decrypt_inout_detached(nonce.into(), &[], buffer, tag.into())
            .map_err(|_| Error::key("the key does not fit, or the encrypted data is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 14 of "The Galois/Counter Mode of Operation" (McGrew, Viega): all zeros.
    const ENCRYPTED: u128 = 0xcea7_403d_4d60_6b6e_074e_c5d3_baf3_9d18;
    const TAG: u128 = 0xd0d1_c8a7_9999_6bf0_265b_98b5_d48a_b919;

    #[test]
    fn a_known_block() {
        let cipher = Cipher::new(&Key::parse(&[0; 32]).unwrap());
        let mut extra = vec![0; NONCE_BYTES];
        extra.extend(TAG.to_be_bytes());
        let mut out = [1; 16];
        cipher.decrypt(&extra, &ENCRYPTED.to_be_bytes(), &mut out).unwrap();
        assert_eq!(out, [0; 16]);

        let other = Cipher::new(&Key::parse(&[1; 32]).unwrap());
        let mut out = [1; 16];
        assert!(matches!(other.decrypt(&extra, &ENCRYPTED.to_be_bytes(), &mut out), Err(Error::Key { .. })));
        assert_eq!(out, [1; 16], "nothing is released under a wrong key");
        assert!(matches!(cipher.decrypt(&extra, &[0; 15], &mut out), Err(Error::Damaged { .. })));
        assert!(matches!(cipher.decrypt(&extra[1..], &[0; 16], &mut out), Err(Error::Damaged { .. })));
    }
}
