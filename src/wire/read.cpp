#include "wire/read.hpp"

#include <cstring>

#include "base/format.hpp"

namespace remote::wire {
namespace {

constexpr std::size_t max_map_key = 1024;

// The place of a value in the message.
struct Place {
  const Place* outer = nullptr;
  std::string_view name{};
  std::size_t index = 0;
  enum class Kind { member, key, entry } kind = Kind::member;

  std::string text() const {
    std::string path = outer != nullptr ? outer->text() : "";
    switch (kind) {
      case Kind::member:
        path.append(path.empty() ? "" : ".").append(name);
        break;
      case Kind::key:
        path.append("[").append(name).append("]");
        break;
      case Kind::entry:
        path.append("[").append(std::to_string(index)).append("]");
        break;
    }
    return path;
  }
  [[noreturn]] void refuse(const std::string& reason) const { throw Malformed(text(), reason); }
  void require(bool fits, const char* reason) const {
    if (!fits) {
      refuse(reason);
    }
  }
};

void read(const Value& from, const Type& type, void* value, const Limits& limits, const Place& place);

// Whether the string contains only permitted characters.
bool fits(std::string_view text, const Limits& limits) {
  switch (limits.text) {
    case Text::line:
      return is_line(text);
    case Text::name:
      return is_name(text);
    case Text::word:
      return is_word(text, limits.marks);
    case Text::id:
      return is_id(text);
    case Text::any:
      break;
  }
  return true;
}

// The range of an integer type, limited to that of long long.
bool is_in_range(long long number, const Type& type) {
  const auto bits = static_cast<int>(8 * type.size);
  if (type.kind == Type::Kind::unsigned_integer) {
    return number >= 0 && (bits == 64 || number >> bits == 0);
  }
  return number >> (bits - 1) == 0 || number >> (bits - 1) == -1;
}

void store(std::uint64_t number, std::size_t size, void* value) {
  const auto put = [&](auto narrow) { std::memcpy(value, &narrow, sizeof(narrow)); };
  switch (size) {
    case 1:
      return put(static_cast<std::uint8_t>(number));
    case 2:
      return put(static_cast<std::uint16_t>(number));
    case 4:
      return put(static_cast<std::uint32_t>(number));
    default:
      return put(number);
  }
}

void read_integer(const Value& from, const Type& type, void* value, const Limits& limits,
                  const Place& place) {
  const auto number = static_cast<long long>(from.number);
  place.require(from.is_integer() && (from.is(Value::Kind::integer) || number >= 0), "is not an integer");
  place.require(number >= limits.least && number <= limits.most && is_in_range(number, type),
                "is out of range");
  store(from.number, type.size, value);
}

void read_real(const Value& from, double& value, const Limits& limits, const Place& place) {
  place.require(from.is_number(), "is not a number");
  value = from.to_double();
  // This also rejects NaN.
  place.require(value >= static_cast<double>(limits.least) && value <= static_cast<double>(limits.most),
                "is out of range");
}

std::string_view read_string(const Value& from, const Limits& limits, const Place& place) {
  place.require(from.is(Value::Kind::string), "is not a string");
  if (from.string.size() > limits.size) {
    place.refuse(text::format("is longer than {} bytes", limits.size));
  }
  place.require(fits(from.string, limits), "has a character that is not allowed");
  return from.string;
}

void read_name(const Value& from, const Type& type, void* value, const Place& place) {
  for (std::size_t i = 0; from.is(Value::Kind::string) && i < type.count; ++i) {
    if (from.string == type.table.names[i]) {
      return store(i, type.size, value);
    }
  }
  place.refuse("is an unknown name");
}

void check_count(const Value& from, const Limits& limits, const Place& place) {
  if (from.values.size() > limits.size) {
    place.refuse(text::format("has more than {} entries", limits.size));
  }
}

void read_list(const Value& from, const Type& type, void* list, const Limits& limits, const Place& place) {
  place.require(from.is(Value::Kind::list), "is not a list");
  check_count(from, limits, place);
  type.operation.resize(list, 0);
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    read(from.values[i], *type.table.inner, type.operation.resize(list, i + 1), limits,
         {&place, {}, i, Place::Kind::entry});
  }
}

void read_set(const Value& from, const Type& type, void* set, const Limits& limits, const Place& place) {
  place.require(from.is(Value::Kind::list), "is not a list");
  check_count(from, limits, place);
  type.operation.add(set, nullptr);
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const std::string text(read_string(from.values[i], limits, {&place, {}, i, Place::Kind::entry}));
    type.operation.add(set, &text);
  }
}

void read_map(const Value& from, const Type& type, void* map, const Limits& limits, const Place& place) {
  place.require(from.is(Value::Kind::object), "is not an object");
  check_count(from, limits, place);
  type.operation.add(map, nullptr);
  for (const Value& each : from.values) {
    place.require(each.name.size() <= max_map_key && is_line(each.name) && fits(each.name, limits),
                  "has a key that is not allowed");
    const std::string name(each.name);
    read(each, *type.table.inner, type.operation.add(map, &name), limits,
         {&place, each.name, 0, Place::Kind::key});
  }
}

void read_object(const Value& from, const Type& type, void* object, const Place& place) {
  place.require(from.is(Value::Kind::object), "is not an object");
  std::size_t known =
      type.is_variant_case && from.find("kind") != nullptr ? 1 : 0;  // read_variant() checks this field
  for (const Member& member : std::span(type.table.members, type.count)) {
    const Place inner{&place, member.name};
    if (const Value* found = from.find(member.name)) {
      ++known;
      read(*found, *member.type, member.find(object), member.limits, inner);
    } else {
      inner.require(member.type->kind == Type::Kind::optional, "is missing");
    }
  }
  place.require(known == from.values.size(), "has an unknown field");
}

void read_variant(const Value& from, const Type& type, void* variant, const Place& place) {
  const Value* kind = from.find("kind");
  if (kind == nullptr || !kind->is(Value::Kind::string)) {
    place.refuse("has no kind");
  }
  for (const VariantCase& each : std::span(type.table.cases, type.count)) {
    if (kind->string == each.kind) {
      return read_object(from, *each.type, each.emplace(variant), place);
    }
  }
  place.refuse("is of an unknown kind");
}

void read(const Value& from, const Type& type, void* value, const Limits& limits, const Place& place) {
  switch (type.kind) {
    case Type::Kind::boolean:
      place.require(from.is(Value::Kind::boolean), "is not true or false");
      *static_cast<bool*>(value) = from.boolean;
      return;
    case Type::Kind::integer:
    case Type::Kind::unsigned_integer:
      return read_integer(from, type, value, limits, place);
    case Type::Kind::real:
      return read_real(from, *static_cast<double*>(value), limits, place);
    case Type::Kind::string:
      *static_cast<std::string*>(value) = read_string(from, limits, place);
      return;
    case Type::Kind::name:
      return read_name(from, type, value, place);
    case Type::Kind::optional:
      if (void* inner = type.operation.set(value, !from.is(Value::Kind::null))) {
        read(from, *type.table.inner, inner, limits, place);
      }
      return;
    case Type::Kind::list:
      return read_list(from, type, value, limits, place);
    case Type::Kind::map:
      return read_map(from, type, value, limits, place);
    case Type::Kind::set:
      return read_set(from, type, value, limits, place);
    case Type::Kind::object:
      return read_object(from, type, value, place);
    case Type::Kind::variant:
      return read_variant(from, type, value, place);
  }
}

}  // namespace

void read(const Value& from, const Type& type, void* value, const Limits& limits, const std::string& path) {
  read(from, type, value, limits, Place{nullptr, path});
}

}  // namespace remote::wire
