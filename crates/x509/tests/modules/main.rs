//! Tests of modules through their public items, in a file for each module.

mod x509;
