// Sources that read records from files, one file after the other. A damaged record is an error with the file and the byte; reading goes on
// behind it, or with the next file where its end is not known.
#pragma once
#include <functional>
#include <memory>

#include "data/file_reader.hpp"
#include "data/node.hpp"

namespace tandem::data {

// The state of one walk besides the file's position.
class RecordParser {
 public:
  virtual ~RecordParser() = default;
  virtual void begin_file(FileReader&) {}  // reads what comes before the first record
  virtual void save(Writer&) const {}      // what it knows besides the file's position
  virtual void restore(Reader&) {}
  virtual bool next(FileReader& file, Element& element) = 0;  // false at the end of the file; errors leave the file behind the record
};

struct FileSource {
  std::string name, arguments;
  std::vector<std::string> files;
  Compression compression = Compression::None;
  size_t buffer_bytes = 1 << 18;
  Specs specs;
  std::function<std::unique_ptr<RecordParser>()> parser;
};
NodeRef file_source(FileSource source);  // UserError when there are no files

Specs bytes_spec();  // (uint8[n])

}  // namespace tandem::data
