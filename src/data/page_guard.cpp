#include "data/page_guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"

namespace tandem::data {

// One entry of a list that only grows: a signal's handler may walk it at any moment and take no lock. `end` is set last and cleared first.
struct Region {
  std::atomic<bool> is_taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<int> fd{-1};
  std::atomic<FileHealth*> health{nullptr};
  Region* next = nullptr;
};

namespace {

std::atomic<Region*> regions{nullptr};
std::atomic<bool> any_broken{false};
struct sigaction previous;
uintptr_t page_bytes = 0;

// A thread that touches a region keeps its file alive, so that entry does not change meanwhile. Others may: an entry whose end is the same
// before and after is read whole.
Region* region_of(uintptr_t address) {
  for (Region* r = regions.load(); r; r = r->next) {
    const uintptr_t end = r->end.load(), begin = r->begin.load();
    if (address >= begin && address < end && r->end.load() == end) return r;
  }
  return nullptr;
}

// Zeros from the page that was touched: to the end when the file has become shorter, for then all of that is gone.
bool repair(uintptr_t address) {
  Region* region = region_of(address);
  if (!region) return false;
  const uintptr_t begin = region->begin.load(), end = region->end.load(), page = address & ~(page_bytes - 1);
  struct stat s;
  const size_t left = fstat(region->fd.load(), &s) == 0 ? static_cast<size_t>(s.st_size) : 0;
  const bool is_short = left <= page - begin;
  const size_t bytes = is_short ? end - page : std::min<size_t>(page_bytes, end - page);
  region->health.load()->mark_broken(address - begin, left);
  any_broken.store(true);
  return mmap(reinterpret_cast<void*>(page), bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_repaired = info->si_code > 0 && repair(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (is_repaired) return;
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
  if (info->si_code <= 0 && previous.sa_handler == SIG_IGN) return;
  signal(number, SIG_DFL);                      // an access is tried again, and ends the process as if nobody had been here
  if (info->si_code <= 0) (void)raise(number);  // one that was sent comes again
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, nullptr, &previous);  // before a signal may come
    sigaction(SIGBUS, &action, nullptr);
  });
}

Region* take_region() {
  for (Region* r = regions.load(); r; r = r->next)
    if (!r->is_taken.exchange(true)) return r;
  auto* r = new Region;  // stays for ever
  r->is_taken = true;
  r->next = regions.load();
  while (!regions.compare_exchange_weak(r->next, r)) {
  }
  return r;
}

}  // namespace

void FileHealth::mark_broken(size_t at, size_t bytes_left) {
  if (marking_.exchange(true)) return;
  at_ = at;
  bytes_left_ = bytes_left;
  broken_.store(true, std::memory_order_release);
}

void FileHealth::throw_broken() const {
  if (bytes_left_ < bytes_)
    resource_error(ErrorCode::DataLoss, path_, ": truncated while it was read: ", bytes_left_, " of ", bytes_, " bytes are left");
  resource_error(ErrorCode::DataLoss, path_, ": byte ", at_, " of ", bytes_,
                 " could not be read: the file was changed meanwhile, or the disk failed");
}

PageGuard::PageGuard(const char* begin, size_t bytes, int fd, FileHealth& health) {
  install();
  region_ = take_region();
  region_->health = &health;
  region_->fd = fd;
  region_->begin = reinterpret_cast<uintptr_t>(begin);
  region_->end = reinterpret_cast<uintptr_t>(begin) + bytes;
}

PageGuard::~PageGuard() {
  region_->end = 0;
  region_->is_taken = false;
}

void WatchedFiles::add(std::shared_ptr<const FileHealth> file) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(files_, file) != files_.end()) return;
  files_.push_back(std::move(file));
  if (files_.size() < tidy_at_) return;
  std::erase_if(files_, [](const auto& f) { return f.use_count() == 1 && !f->is_broken(); });  // closed, so it cannot break any more
  tidy_at_ = 2 * files_.size() + 16;
}

void WatchedFiles::require_whole_views() {
  if (!any_broken.load()) return;
  std::lock_guard lock(mutex_);
  for (const auto& f : files_)
    if (f->gave_views()) f->require_whole();
}

}  // namespace tandem::data
