//! Tests of modules through their public items, in a file for each module, and of the sources themselves.

mod layers;
