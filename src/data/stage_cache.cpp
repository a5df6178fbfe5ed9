// cache in memory, cache in a file, snapshot: the first whole walk keeps its elements, later ones read them.
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "base/text.hpp"
#include "data/crc32c.hpp"
#include "data/file_source.hpp"
#include "data/node.hpp"
#include "data/record_format.hpp"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

// --- memory ------------------------------------------------------------------------------------------------------------------------

class MemoryCacheNode final : public Node {
 public:
  using Elements = std::shared_ptr<const std::vector<Element>>;
  explicit MemoryCacheNode(NodeRef input) : Node("cache", {std::move(input)}) {}
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  Elements kept() const {
    std::lock_guard lock(mutex_);
    return kept_;
  }
  void keep(Elements elements) const {
    std::lock_guard lock(mutex_);
    if (!kept_) kept_ = std::move(elements);
  }

 private:
  mutable std::mutex mutex_;
  mutable Elements kept_;  // all of them, once one walk has seen the end
};

class MemoryCacheWalk final : public InputWalk {
 public:
  MemoryCacheWalk(const MemoryCacheNode& node, const Scope& scope)
      : InputWalk(node, scope), node_(node), context_(*scope.context), kept_(node.kept()), held_(context_.budget) {}

 protected:
  bool next(Element& element) override {
    if (kept_) {
      if (at_ == kept_->size()) return false;
      element = (*kept_)[at_++];
      return true;
    }
    if (input().pull(element)) {
      held_.add(bytes_of(element), "the cache");
      own_.push_back(element);
      return true;
    }
    context_.files.require_whole_views();
    at_ = own_.size();
    kept_ = std::make_shared<const std::vector<Element>>(std::move(own_));
    node_.keep(kept_);
    return false;
  }
  void save(Writer& w) override {
    const std::vector<Element>& elements = kept_ ? *kept_ : own_;
    w.put(kept_ != nullptr);
    w.put(static_cast<int64_t>(at_));
    w.put(static_cast<int64_t>(elements.size()));
    for (const Element& e : elements) w.put(e);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    const bool is_whole = r.boolean();
    const int64_t at = r.integer(0, INT64_MAX), count = r.integer(0, INT64_MAX);
    std::vector<Element> elements;
    const auto declared = node_.specs();
    for (int64_t i = 0; i < count; ++i) elements.push_back(r.element(declared));
    at_ = static_cast<size_t>(std::min(at, count));
    kept_.reset();
    if (is_whole) {
      kept_ = std::make_shared<const std::vector<Element>>(std::move(elements));
      node_.keep(kept_);
    } else {
      for (const Element& e : elements) held_.add(bytes_of(e), "the cache");
      own_ = std::move(elements);
    }
    InputWalk::restore(r);
  }

 private:
  const MemoryCacheNode& node_;
  Context& context_;
  MemoryCacheNode::Elements kept_;
  std::vector<Element> own_;  // while it is the first
  size_t at_ = 0;
  Held held_;
};

std::unique_ptr<Walk> MemoryCacheNode::walk(const Scope& scope) const { return std::make_unique<MemoryCacheWalk>(*this, scope); }

// --- file --------------------------------------------------------------------------------------------------------------------------

class FileCacheNode final : public Node {
 public:
  FileCacheNode(std::string name, std::string shown, NodeRef input, std::string file)
      : Node(std::move(name), {std::move(input)}), file(std::move(file)), shown_(std::move(shown)) {}
  std::string arguments() const override { return shown_; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const std::string file;

 private:
  const std::string shown_;
};

// Reads the file when it is there. Else lets elements through and writes them; the file takes its name at the end.
class FileCacheWalk final : public InputWalk {
 public:
  FileCacheWalk(const FileCacheNode& node, const Scope& scope)
      : InputWalk(node, scope), node_(node), declared_(node.specs()), context_(*scope.context) {}

 protected:
  bool next(Element& element) override {
    if (mode_ == Mode::New) begin();
    if (mode_ == Mode::Reading) return read(element);
    if (input().pull(element)) {
      if (file_) put(element);
      return true;
    }
    if (file_) finish();
    return false;
  }
  void save(Writer& w) override {
    w.put(static_cast<int64_t>(mode_ == Mode::Writing ? Mode::Passing : mode_));  // half a file is not kept
    w.put(reader_ ? reader_->offset() : int64_t{0});
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    mode_ = static_cast<Mode>(r.integer(0, static_cast<int64_t>(Mode::Passing)));
    const int64_t offset = r.integer(0, INT64_MAX);
    if (mode_ == Mode::Reading) {
      reader_ = reader();
      reader_->skip_to(offset);
    }
    InputWalk::restore(r);
  }

 private:
  enum class Mode : uint8_t { New, Reading, Writing, Passing };

  // Without a budget: an element that was written is read, and the file has a byte for each of its bytes.
  std::unique_ptr<FileReader> reader() const { return std::make_unique<FileReader>(node_.file, ReaderOptions{.files = Files::Regular}); }
  void begin() {
    std::error_code error;
    if (fs::exists(node_.file, error)) {
      mode_ = Mode::Reading;
      reader_ = reader();
      return;
    }
    const fs::path parent = fs::path(node_.file).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    file_.emplace(node_.file);
    mode_ = Mode::Writing;
  }
  void put(std::string_view record) {
    const RecordFrame frame = frame_of(record);
    file_->write({frame.head, sizeof frame.head});
    file_->write(record);
    file_->write({frame.tail, sizeof frame.tail});
  }
  void put(const Element& element) {
    Writer w;
    w.put(element);
    put(w.bytes());
  }
  void finish() {
    context_.files.require_whole_views();
    put(kEnd);
    file_->commit(AtomicFile::Flush::Later);  // checksums tell what a crash left
    file_.reset();
  }
  [[noreturn]] void damaged(int64_t at, std::string_view why) {
    ended_ = true;
    resource_error(ErrorCode::DataLoss, node_.file, ": damaged at byte ", at, ": ", why,
                   "\n  hint: remove the file, and it is written again");
  }
  bool read(Element& element) {
    if (ended_) return false;
    const int64_t at = reader_->offset();
    const PeekedRecord record = peek_record(*reader_);
    if (record.state == PeekedRecord::State::EndOfFile) damaged(at, "it ends without its last record");
    if (record.state != PeekedRecord::State::Whole) damaged(at, record.problem);
    if (record.bytes == kEnd) {
      ended_ = true;
      return false;
    }
    try {
      Reader r(record.bytes);
      element = r.element(declared_);
      if (!r.at_end()) user_error("there is more behind an element");
    } catch (const UserError&) {
      damaged(at, "its record is no element of this pipeline");
    }
    reader_->consume(record.consumed_bytes);
    return true;
  }

  static constexpr std::string_view kEnd = "end";
  const FileCacheNode& node_;
  const std::optional<Specs> declared_;
  Context& context_;
  Mode mode_ = Mode::New;
  bool ended_ = false;
  std::optional<AtomicFile> file_;  // while it is written
  std::unique_ptr<FileReader> reader_;
};

std::unique_ptr<Walk> FileCacheNode::walk(const Scope& scope) const { return std::make_unique<FileCacheWalk>(*this, scope); }

}  // namespace

Dataset Dataset::cache() const { return Dataset(std::make_shared<MemoryCacheNode>(node_of(*this))); }

Dataset Dataset::cache(const std::string& file) const {
  if (file.empty()) user_error("cache: the name of the file is empty");
  return Dataset(std::make_shared<FileCacheNode>("cache", file, node_of(*this), file));
}

// One file for each description, so that pipelines that differ do not read each other's elements.
Dataset Dataset::snapshot(const std::string& folder) const {
  if (folder.empty()) user_error("snapshot: the name of the folder is empty");
  const std::string description = node_of(*this)->pipeline();
  char name[32];
  std::snprintf(name, sizeof name, "%08x-%zx", crc32c(description.data(), description.size()), description.size());
  return Dataset(
      std::make_shared<FileCacheNode>("snapshot", folder, node_of(*this), (fs::path(folder) / (std::string(name) + ".elements")).string()));
}

}  // namespace tandem::data
