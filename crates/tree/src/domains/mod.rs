//! What tilefs knows about the data models of other libraries, one folder each.

pub mod bioimaging;
pub mod cf;
pub mod filestore;
pub mod soma;
pub mod vcf;
