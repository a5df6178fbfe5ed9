// RecordWriter: TFRecord files, as Dataset::tfrecords and TensorFlow read them.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <tandem/data/options.hpp>

namespace tandem::data {

class RecordWriter {
 public:
  explicit RecordWriter(const std::string& file, Compression compression = Compression::None);  // replaces what is there
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  ~RecordWriter();  // closes; an error is lost there
  void write(std::string_view record);
  void close();  // ResourceError when not all of it could be written

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::data
