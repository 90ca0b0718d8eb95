#include "wire/write.hpp"

#include <cstring>
#include <stdexcept>

namespace remote::wire {
namespace {

template <typename Integer>
Integer load(const void* value) {
  Integer number{};
  std::memcpy(&number, value, sizeof(number));
  return number;
}

std::uint64_t load_unsigned(const void* value, std::size_t size) {
  switch (size) {
    case 1:
      return load<std::uint8_t>(value);
    case 2:
      return load<std::uint16_t>(value);
    case 4:
      return load<std::uint32_t>(value);
    default:
      return load<std::uint64_t>(value);
  }
}

std::int64_t load_signed(const void* value, std::size_t size) {
  const auto unused = static_cast<int>(64 - 8 * size);
  return static_cast<std::int64_t>(load_unsigned(value, size) << unused) >> unused;
}

// Returns the value of a member, or nullptr for an empty optional, which is not written.
const void* find_value(const Member& member, const void* object) {
  const void* value = member.find(const_cast<void*>(object));  // the function only adds an offset
  return member.type->kind == Type::Kind::optional ? member.type->operation.get(value) : value;
}

void write_members(const Type& type, const void* object, std::string_view kind, Writer& writer) {
  const std::span members(type.table.members, type.count);
  std::size_t count = kind.empty() ? 0 : 1;
  for (const Member& member : members) {
    count += find_value(member, object) != nullptr ? 1 : 0;
  }
  writer.begin_object(count);
  if (!kind.empty()) {
    writer.write_key("kind");
    writer.write_string(kind);
  }
  for (const Member& member : members) {
    if (const void* value = find_value(member, object)) {
      writer.write_key(member.name);
      write(member.type->kind == Type::Kind::optional ? *member.type->table.inner : *member.type, value,
            writer);
    }
  }
  writer.end();
}

void write_list(const Type& type, const void* list, Writer& writer) {
  const std::span<const std::byte> bytes = type.operation.bytes(list);
  writer.begin_list(bytes.size() / type.size);
  for (std::size_t at = 0; at < bytes.size(); at += type.size) {
    write(*type.table.inner, &bytes[at], writer);
  }
  writer.end();
}

struct MapContext {
  const Type& type;
  Writer& writer;
};

void count_entry(void* context, const std::string& /*key*/, const void* /*value*/) {
  ++*static_cast<std::size_t*>(context);
}

void write_entry(void* context, const std::string& key, const void* value) {
  const auto& [type, writer] = *static_cast<MapContext*>(context);
  if (type.kind == Type::Kind::map) {
    writer.write_key(key);
  }
  write(*type.table.inner, value, writer);
}

void write_map_or_set(const Type& type, const void* container, Writer& writer) {
  std::size_t count = 0;
  type.operation.visit(container, &count, &count_entry);
  if (type.kind == Type::Kind::map) {
    writer.begin_object(count);
  } else {
    writer.begin_list(count);
  }
  MapContext context{type, writer};
  type.operation.visit(container, &context, &write_entry);
  writer.end();
}

}  // namespace

void write(const Type& type, const void* value, Writer& writer) {
  switch (type.kind) {
    case Type::Kind::boolean:
      return writer.write_bool(*static_cast<const bool*>(value));
    case Type::Kind::integer:
      return writer.write_integer(load_signed(value, type.size));
    case Type::Kind::unsigned_integer:
      return writer.write_unsigned(load_unsigned(value, type.size));
    case Type::Kind::real:
      return writer.write_real(load<double>(value));
    case Type::Kind::string:
      return writer.write_string(*static_cast<const std::string*>(value));
    case Type::Kind::name: {
      const std::uint64_t number = load_unsigned(value, type.size);
      if (number >= type.count) {
        throw std::out_of_range("a value without a name");
      }
      return writer.write_string(type.table.names[number]);
    }
    case Type::Kind::optional: {
      const void* held = type.operation.get(value);
      return held != nullptr ? write(*type.table.inner, held, writer) : writer.write_null();
    }
    case Type::Kind::list:
      return write_list(type, value, writer);
    case Type::Kind::map:
    case Type::Kind::set:
      return write_map_or_set(type, value, writer);
    case Type::Kind::object:
      return write_members(type, value, "", writer);
    case Type::Kind::variant: {
      const auto [index, held] = type.operation.held(value);
      const VariantCase& found = type.table.cases[index];
      return write_members(*found.type, held, found.kind, writer);
    }
  }
}

}  // namespace remote::wire
