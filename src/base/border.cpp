#include "base/border.hpp"

#include <new>
#include <stdexcept>
#include <system_error>

#include <tandem/error.hpp>

#include "base/text.hpp"

namespace tandem {

void rethrow_as_ours(std::string_view what) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    resource_error(ErrorCode::ResourceExhausted, what,
                   ": the host has no memory left\n  hint: smaller batches, fewer things kept, or more memory");
  } catch (const std::length_error& e) {
    resource_error(ErrorCode::ResourceExhausted, what, ": a size that no memory can hold (", e.what(), ")");
  } catch (const std::system_error& e) {  // filesystem_error and ios_base::failure are such
    const bool is_system = e.code().category() == std::system_category() || e.code().category() == std::generic_category();
    resource_error(is_system ? code_of_errno(e.code().value()) : ErrorCode::Unavailable, what, ": ", e.what());
  }
}

}  // namespace tandem
