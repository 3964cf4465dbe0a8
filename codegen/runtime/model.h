/* The C interface of an emitted model, the same for every target. What the tensors are, the functions below say; most
 * models have fixed shapes, others were made for several sizes of some extents (a batch, a sequence), one of which is
 * set at a time. Tensors are dense, row-major, bool one byte. A model runs in one thread at a time: in another,
 * gopt_run fails meanwhile. On the CPU pointers are to host memory and `stream` is unused. On a GPU pointers are to
 * host or device memory and `stream` is a cudaStream_t: a run is queued on it (runs of one model on one stream, that
 * is); with a null stream the call returns when the outputs are there. */
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
  const int64_t* dims;        /* -1: open */
  size_t size_bytes;          /* 0 where an extent is open */
  const char* const* extents; /* of each axis the open extent's name, or null; null where none is open */
} gopt_tensor_info;

int gopt_input_count(void);
int gopt_output_count(void);
const gopt_tensor_info* gopt_input(int number);
const gopt_tensor_info* gopt_output(int number);

/* Open extents, by number: 0 of them where all shapes are fixed. */
int gopt_extent_count(void);
const char* gopt_extent_name(int number);
/* Where there is code for any size: the greatest that this extent may be, or 0 where it may be any. -1: there is code
 * for the sizes below alone. */
int64_t gopt_extent_maximum(int number);
/* Sizes that there is code of their own for, and of each its extents, gopt_extent_count() numbers; where there is code
 * for any size alone, the one that it was planned for. */
int gopt_size_count(void);
const int64_t* gopt_size(int number);

/* Loads the weights and prepares every kernel. threads: 0, as many as OpenMP would take,
 * within the quota of the process's control group. Null: it failed, `error` says why. */
gopt_model* gopt_create(const char* weights_path, int threads, char* error, size_t error_size);
/* Chooses the code that runs from now on: for these extents, gopt_extent_count() numbers. Of a new model it is that for
 * gopt_size(0). A size that has code of its own is run by that, any other by the code for any size, where there is one;
 * else, where a model does not mix what is in its batch, any sum of the sizes of that extent is run in parts.
 * Prepares kernels and allocates where a size with its own code is set for the first time; what was prepared stays. The
 * code for any size makes its kernels anew each time, in memory that only grows, and that is there from the start where
 * every extent has a maximum.
 * 0: done. Otherwise gopt_error() says which sizes there are, and the one before stays set. */
int gopt_set_extents(gopt_model* model, const int64_t* extents);
/* What gopt_input and gopt_output say, at the extents that are set: no extent is open. */
const gopt_tensor_info* gopt_input_now(const gopt_model* model, int number);
const gopt_tensor_info* gopt_output_now(const gopt_model* model, int number);

/* ---- Operators that the model has no code of, and calls functions of yours for. Most models have none. ---- */

/* A dense, row-major tensor. `data` is null where an input or output is left out or holds no element, and where an
 * output that nobody reads is of an unknown shape (its element is 0 then). It is aligned as its elements are. */
typedef struct {
  int element; /* as ONNX numbers them */
  int rank;
  const int64_t* dims;
  size_t size_bytes;
  void* data; /* of an input only to be read */
} gopt_tensor;

/* An attribute of the node, as it stands in the model; that of `kind`, as ONNX numbers kinds of attributes, is not
 * null: 1 and 6 floats, 2 and 7 integers, 3 and 8 strings, 4 a tensor. Not given are graphs (bodies of an If), types,
 * sparse tensors, lists of tensors, and tensors of strings, complex numbers, integers of 4 bits or floats of 8. */
typedef struct {
  const char* name;
  int kind;
  size_t count; /* 1 where it is no list */
  const float* floats;
  const int64_t* ints;
  const char* const* strings; /* each ends in a zero byte, beside its length */
  const size_t* lengths;
  const gopt_tensor* tensor;
} gopt_attribute;

/* One call: a node of the model at the extents that are set. All of it is there until the function returns. */
typedef struct {
  const char* domain; /* "" is ONNX's own */
  const char* op_type;
  const char* node; /* its name, else that of its first output */
  int attribute_count, input_count, output_count;
  const gopt_attribute* attributes;
  const gopt_tensor* inputs;  /* those of the node, then what its bodies read from outside */
  const gopt_tensor* outputs; /* of the types and extents that the model declares: all elements are to be written */
  int threads;                /* that the model runs with; 0 as OpenMP says */
  char* error;                /* room for a message, ended by a zero byte, where the function fails */
  size_t error_size;
} gopt_call;

/* 0: done. Anything else: gopt_run fails, and gopt_error() has this number and the message. */
typedef int (*gopt_function)(const gopt_call* call, void* user);

/* Their names, "com.acme::Swish" or, of ONNX's own, "Multinomial". */
int gopt_operator_count(void);
const char* gopt_operator(int number);
/* Says which function is called for an operator of the model from now on, and what it is given as `user`. Each operator
 * has one before the first run; a run that comes to one without fails. Models that were created apart have their own
 * functions; one that two of them share may be called in two threads at once. 0: done; otherwise gopt_error() names the
 * operators of the model. */
int gopt_register(gopt_model* model, const char* name, gopt_function function, void* user);

/* Of code for a GPU: the model's own memory on the device for an input or output, from gopt_create to gopt_destroy.
 * gopt_run copies nothing where it is given that: an input is what was written there last, in the order of the stream.
 * Null where there is none: for the CPU, which reads and writes where it is told, an empty tensor, a wrong number. */
void* gopt_device_input(gopt_model* model, int number);
void* gopt_device_output(gopt_model* model, int number);

/* 0: done. Otherwise gopt_error() says why not. Allocates nothing. */
int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void* stream);
const char* gopt_error(const gopt_model* model);

/* Of all sizes together. */
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
