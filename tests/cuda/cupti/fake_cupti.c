// A profiling library that sees two kernels, a copy and a fill of the first GPU, and a kernel and a
// fill of the second, whenever it is asked, and counts in three passes. Its clock is a million
// seconds ahead of the steady one.
//   STROBE_FAKE_CUPTI  attached: another profiler is there; forbidden: counters are for root alone;
//                      virtual: the GPU cannot be profiled; endless: the passes never end; uneven:
//                      more kernels are counted than were seen; geforce: DRAM's bytes have other
//                      names
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default"))) int

enum {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,
  kInvalidMetricName = 17,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kPasses = 3,
  kImageBytes = 64
};

static int mode_is(const char* mode) {
  const char* set = getenv("STROBE_FAKE_CUPTI");
  return set != NULL && strcmp(set, mode) == 0;
}

API cuptiGetResultString(int result, const char** text) {
  *text = result == kInsufficientPrivileges ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == kMultipleSubscribers  ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                            : "CUPTI_ERROR_UNKNOWN";
  return kSuccess;
}

API cuptiGetVersion(uint32_t* version) {
#ifdef WITHOUT_COUNTERS
  *version = 22;
#else
  *version = 130102;
#endif
  return kSuccess;
}

API cuptiGetTimestamp(uint64_t* ns) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1000000000000000u;
  return kSuccess;
}

// Activity. A record is written at fixed places, as CUPTI's headers have them.

static void (*lend)(uint8_t**, size_t*, size_t*) = NULL;
static void (*give_back)(void*, uint32_t, uint8_t*, size_t, size_t) = NULL;
static unsigned enabled = 0;
enum { kRecordBytes = 112, kRecords = 6 };

static void put(uint8_t* record, size_t at, const void* value, size_t bytes) {
  memcpy(record + at, value, bytes);
}
static void put_int(uint8_t* record, size_t at, int32_t value) {
  put(record, at, &value, sizeof value);
}
static void put_long(uint8_t* record, size_t at, uint64_t value) {
  put(record, at, &value, sizeof value);
}

static void write_kernel(uint8_t* record, int device, const char* name, uint64_t start) {
  const uint16_t registers = 168;
  put_int(record, 0, 10);
  put(record, 6, &registers, sizeof registers);
  put_long(record, 16, start);
  put_long(record, 24, start + 2000);
  put_int(record, 40, device);
  put_int(record, 48, 7);  // stream
  put_int(record, 52, 132);
  put_int(record, 56, 2);
  put_int(record, 60, 1);
  put_int(record, 64, 384);
  put_int(record, 68, 1);
  put_int(record, 72, 1);
  put_int(record, 76, 16);
  put_int(record, 80, 200000);
  put_int(record, 84, 24);
  put(record, 104, &name, sizeof name);
}

static void write_memory(uint8_t* record, int device, int kind, uint8_t copy_kind, uint64_t start) {
  put_int(record, 0, kind);
  record[4] = copy_kind;
  put_long(record, 8, 4096);
  put_long(record, 16, start);
  put_long(record, 24, start + 500);
  put_int(record, 32, device);
  put_int(record, 40, kind == 2 ? 8 : 7);  // a stream of its own for fills
}

API cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                   void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t)) {
  lend = request;
  give_back = complete;
  return kSuccess;
}
API cuptiActivityEnable(int kind) {
  if (mode_is("attached")) return kMultipleSubscribers;
  enabled |= 1u << kind;
  return kSuccess;
}
API cuptiActivityDisable(int kind) {
  enabled &= ~(1u << kind);
  return kSuccess;
}
API cuptiActivityFlushAll(uint32_t flag) {
  uint8_t* buffer = NULL;
  size_t bytes = 0, most = 0;
  uint64_t now = 0;
  (void)flag;
  if (enabled != ((1u << 10) | (1u << 1) | (1u << 2))) return kSuccess;
  cuptiGetTimestamp(&now);
  lend(&buffer, &bytes, &most);
  if (bytes < kRecords * kRecordBytes) return kSuccess;
  memset(buffer, 0, kRecords * kRecordBytes);
  write_kernel(buffer, 0, "_ZN6strobe7forwardEPKf", now - 20000);
  write_kernel(buffer + kRecordBytes, 0, "fold", now - 18500);  // before the other has ended
  write_memory(buffer + 2 * kRecordBytes, 0, 1, 1, now - 30000);
  write_memory(buffer + 3 * kRecordBytes, 0, 2, 0, now - 10000);
  write_kernel(buffer + 4 * kRecordBytes, 1, "elsewhere", now - 25000);
  write_memory(buffer + 5 * kRecordBytes, 1, 2, 0, now - 15000);
  give_back(NULL, 0, buffer, bytes, kRecords * kRecordBytes);
  return kSuccess;
}
API cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  uint8_t* next = *record == NULL ? buffer : (uint8_t*)*record + kRecordBytes;
  if (next >= buffer + valid) return kMaxLimitReached;
  *record = next;
  return kSuccess;
}
API cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  (void)context;
  (void)stream;
  *dropped = 1;
  return kSuccess;
}

#ifndef WITHOUT_COUNTERS
// Counters. Parameters are read at fixed places too; the first of them is their size.

static int size_is(const void* parameters, size_t bytes) {
  return *(const size_t*)parameters == bytes ? kSuccess : kInvalidParameter;
}
static void* pointer_at(const void* parameters, size_t at) {
  void* value;
  memcpy(&value, (const char*)parameters + at, sizeof value);
  return value;
}
static size_t size_at(const void* parameters, size_t at) {
  size_t value;
  memcpy(&value, (const char*)parameters + at, sizeof value);
  return value;
}

static int object;
static int sessions = 0, hosts = 0, profilers = 0, running = 0, passes = 0;

__attribute__((visibility("default"))) int fake_cupti_left_open(void) {
  return sessions + hosts + profilers + running;
}

// Called with 1 where a pass starts, and with 0 where it stops.
static void (*pass_watcher)(int) = NULL;

__attribute__((visibility("default"))) void fake_cupti_watch_passes(void (*watcher)(int)) {
  pass_watcher = watcher;
}

API cuptiProfilerInitialize(void* p) {
  ++sessions;
  return size_is(p, 16);
}
API cuptiProfilerDeInitialize(void* p) {
  --sessions;
  return size_is(p, 16);
}
API cuptiProfilerDeviceSupported(void* p) {
  const int supported = mode_is("virtual") ? 1 : 3;
  put_int(p, 20, supported);
  put_int(p, 32, supported);  // as a virtual GPU
  return size_is(p, 52);
}
API cuptiDeviceGetChipName(void* p) {
  static const char name[] = "FK100";
  const char* text = name;
  put(p, 24, &text, sizeof text);
  return size_is(p, 32);
}
API cuptiProfilerGetCounterAvailability(void* p) {
  if (mode_is("forbidden")) return kInsufficientPrivileges;
  put_long(p, 24, kImageBytes);
  return size_is(p, 40);
}
API cuptiProfilerHostInitialize(void* p) {
  void* host = &object;
  put(p, 40, &host, sizeof host);
  ++hosts;
  return strcmp(pointer_at(p, 24), "FK100") == 0 ? size_is(p, 48) : kInvalidParameter;
}
API cuptiProfilerHostDeinitialize(void* p) {
  --hosts;
  return size_is(p, 24);
}
API cuptiProfilerHostConfigAddMetrics(void* p) {
  const char** names = pointer_at(p, 24);
  if (strstr(names[0], "gmma") != NULL) return kInvalidMetricName;
  if (mode_is("geforce") && strcmp(names[0], "dram__bytes_read.sum") == 0)
    return kInvalidMetricName;
  return size_is(p, 40);
}
API cuptiProfilerHostGetConfigImageSize(void* p) {
  put_long(p, 24, kImageBytes);
  return size_is(p, 32);
}
API cuptiProfilerHostGetConfigImage(void* p) {
  return size_is(p, 40);
}
API cuptiProfilerHostGetNumOfPasses(void* p) {
  put_long(p, 32, kPasses);
  return size_is(p, 40);
}
static double value_of(const char* name, size_t range) {
  if (strcmp(name, "gpu__time_duration.sum") == 0) return range == 0 ? 3000 : 1000;
  if (strstr(name, "dram__bytes_op") != NULL) return 3e6;
  if (strstr(name, "dram__bytes") != NULL) return 1e6;
  if (strstr(name, "long_scoreboard") != NULL) return 6;
  if (strstr(name, "issue_stalled") != NULL) return 0.125;
  if (strstr(name, "bank_conflicts") != NULL) return NAN;
  return range == 0 ? 80 : 40;
}
API cuptiProfilerHostEvaluateToGpuValues(void* p) {
  const char** names = pointer_at(p, 48);
  double* values = pointer_at(p, 64);
  for (size_t i = 0; i < size_at(p, 56); ++i) values[i] = value_of(names[i], size_at(p, 40));
  return size_is(p, 72);
}
API cuptiRangeProfilerEnable(void* p) {
  void* ranges = &object;
  put(p, 24, &ranges, sizeof ranges);
  ++profilers;
  passes = 0;
  return size_is(p, 32);
}
API cuptiRangeProfilerDisable(void* p) {
  --profilers;
  return size_is(p, 24);
}
API cuptiRangeProfilerGetCounterDataSize(void* p) {
  put_long(p, 56, kImageBytes);
  return size_is(p, 64);
}
API cuptiRangeProfilerCounterDataImageInitialize(void* p) {
  return size_is(p, 40);
}
API cuptiRangeProfilerSetConfig(void* p) {
  return size_is(p, 90);
}
API cuptiRangeProfilerStart(void* p) {
  ++running;
  if (pass_watcher != NULL) pass_watcher(1);
  return size_is(p, 24);
}
API cuptiRangeProfilerStop(void* p) {
  if (pass_watcher != NULL) pass_watcher(0);
  --running;
  ++passes;
  ((uint8_t*)p)[40] = !mode_is("endless") && passes == kPasses;
  return size_is(p, 41);
}
API cuptiRangeProfilerDecodeData(void* p) {
  return size_is(p, 32);
}
API cuptiRangeProfilerGetCounterDataInfo(void* p) {
  put_long(p, 32, mode_is("uneven") ? 3 : 2);
  return size_is(p, 40);
}
#endif
