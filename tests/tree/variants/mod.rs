//! Datasets of TileDB-VCF, compared with the VCF files that were stored in them and with what bcftools reads and makes.

mod bcf;
mod files;
mod merged;
mod plink;
mod saved;
mod sites;
mod tables;
