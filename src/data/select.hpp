// What stages that only choose among the items of one input have in common.
#pragma once
#include <memory>
#include <utility>

#include "data/node.hpp"

namespace tandem::data {

// A node `Stage` with `template <class Item> std::unique_ptr<Flow<Item>> flow(const Scope&) const`, over rows or elements.
template <class Stage> class SelectNode : public RowNode {
 public:
  SelectNode(std::string name, NodeRef input) : RowNode(std::move(name), {std::move(input)}) {}
  std::unique_ptr<IndexFlow> index_walk(const Scope& scope) const override { return stage().template flow<int64_t>(scope); }

 protected:
  std::unique_ptr<Walk> element_walk(const Scope& scope) const override { return stage().template flow<Element>(scope); }

 private:
  const Stage& stage() const { return static_cast<const Stage&>(*this); }
};

// What an item keeps in memory, and how it is written.
inline size_t held_bytes(int64_t) { return sizeof(int64_t); }
inline size_t held_bytes(const Element& e) { return bytes_of(e); }
inline void put_item(Writer& w, int64_t item) { w.put(item); }
inline void put_item(Writer& w, const Element& item) { w.put(item); }
inline void get_item(Reader& r, const std::optional<Specs>&, int64_t& item) { item = r.integer(); }
inline void get_item(Reader& r, const std::optional<Specs>& declared, Element& item) { item = r.element(declared); }

}  // namespace tandem::data
