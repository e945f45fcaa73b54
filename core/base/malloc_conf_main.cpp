// How a program that ends soon has jemalloc keep memory.

/// jemalloc (3), TUNING: what has been freed stays for the next array and is not given back to the system,
/// and large arrays are the threads' arenas' too. Arrays of a model come and go in the same sizes; given
/// back, their pages are zeroed anew each time.
extern "C" const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";
