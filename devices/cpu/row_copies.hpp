// Copies of rows that lie apart, by all threads.
#pragma once
#include "base/thread_pool.hpp"
#include "device/device.hpp"

namespace tandem::cpu {

void copy_rows(void* to, const device::HostRows& rows, ThreadPool& pool);

}  // namespace tandem::cpu
