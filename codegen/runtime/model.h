/* The C interface of an emitted model, the same for every target. Fixed shapes: what the tensors are, the functions
 * below say. Tensors are dense, row-major, bool one byte. A model runs in one thread at a time: in another, gopt_run
 * fails meanwhile. On the CPU pointers are to host memory and `stream` is unused. On a GPU pointers are to host or
 * device memory and `stream` is a cudaStream_t: a run is queued on it (runs of one model on one stream, that is); with
 * a null stream the call returns when the outputs are there. */
#ifndef GOPT_MODEL_H
#define GOPT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gopt_model gopt_model;

typedef struct {
  const char* name;
  int element; /* as ONNX numbers them: 1 float32, 7 int64, ... */
  int rank;
  const int64_t* dims;
  size_t size_bytes;
} gopt_tensor_info;

int gopt_input_count(void);
int gopt_output_count(void);
const gopt_tensor_info* gopt_input(int number);
const gopt_tensor_info* gopt_output(int number);

/* Loads the weights and prepares every kernel. threads: 0 as OpenMP says. Null: it failed, `error` says why. */
gopt_model* gopt_create(const char* weights_path, int threads, char* error, size_t error_size);
/* 0: done. Otherwise gopt_error() says why not. Allocates nothing. */
int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void* stream);
const char* gopt_error(const gopt_model* model);

int gopt_kernel_count(void);
const char* gopt_kernel_name(int number);
/* As gopt_run, and adds the milliseconds of each kernel to its entry. */
int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void* stream,
                 double* milliseconds);

void gopt_destroy(gopt_model* model);

#ifdef __cplusplus
}
#endif

#endif
