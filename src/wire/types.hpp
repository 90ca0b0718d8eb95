#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wire/fields.hpp"

// Tables that describe the types of fields.hpp, so that a single function can convert all types. Templates
// would make up most of the agent's size.

namespace remote::wire {

// The agent writes some types and reads others, so each direction has its own tables.
enum class Direction { write, read };

struct Type;

struct Member {
  std::string_view name;
  Limits limits;
  const Type* type;
  void* (*find)(void* object) noexcept;
};

struct VariantCase {
  std::string_view kind;
  const Type* type;
  void* (*emplace)(void* variant);  // only for reading
};

// The value of a variant.
struct Held {
  std::size_t index;
  const void* value;
};

struct Type {
  enum class Kind : std::uint8_t {
    boolean,
    integer,  // also durations
    unsigned_integer,
    real,  // double
    string,
    name,      // the name of an enum's value
    optional,  // contains `inner`, like the next three
    list,
    map,
    set,  // of strings
    object,
    variant,
  };
  using Visit = void (*)(void* context, const std::string& key, const void* value);
  union Table {
    const Type* inner = nullptr;
    const std::string_view* names;
    const Member* members;
    const VariantCase* cases;
  };
  union Operation {
    // For writing.
    const void* (*get)(const void* optional) noexcept = nullptr;  // returns nullptr if it is empty
    std::span<const std::byte> (*bytes)(const void* list) noexcept;
    void (*visit)(const void* map_or_set, void* context, Visit each);
    Held (*held)(const void* variant);
    // For reading.
    void* (*set)(void* optional, bool has_value);    // returns the value
    void* (*resize)(void* list, std::size_t count);  // returns the last element
    void* (*add)(void* map_or_set,
                 const std::string* key);  // returns the value; if there is no key, clears the map or set
  };

  Kind kind;
  bool is_variant_case = false;  // the object has a field "kind"
  std::uint16_t count = 0;       // number of entries in the table
  std::uint32_t size = 0;        // size in bytes of an integer, an enum or an element of the list
  Table table{};
  Operation operation{};
};

template <typename T, Direction direction>
struct TypeOf {
  static const Type type;
};

namespace detail {

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <typename T>
inline constexpr bool is_duration = false;
template <typename Rep, typename Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;
template <typename T>
inline constexpr bool is_map = false;
template <typename T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

template <typename T, auto member>
void* find_member(void* object) noexcept {
  return &(static_cast<T*>(object)->*member);
}

template <typename T, Direction direction, typename Indices>
struct Members;
template <typename T, Direction direction, std::size_t... I>
struct Members<T, direction, std::index_sequence<I...>> {
  static constexpr auto fields = fields_of<T>();
  template <std::size_t i>
  static constexpr Member describe() {
    constexpr auto field = get_field<i>(fields);
    using Value = typename decltype(field)::value_type;
    return {field.name, field.limits, &TypeOf<Value, direction>::type, &find_member<T, field.member>};
  }
  static constexpr std::array<Member, sizeof...(I)> table{describe<I>()...};
};

template <typename T, Direction direction>
constexpr Type describe_object() {
  constexpr auto count = decltype(fields_of<T>())::count;
  const auto& table = Members<T, direction, std::make_index_sequence<count>>::table;
  return {.kind = Type::Kind::object,
          .is_variant_case = Alternative<T>,
          .count = count,
          .table = {.members = table.data()}};
}

// The operations for writing.

template <typename T>
const void* get_value(const void* optional) noexcept {
  const auto& value = *static_cast<const std::optional<T>*>(optional);
  return value ? &*value : nullptr;
}

template <typename T>
std::span<const std::byte> get_bytes(const void* list) noexcept {
  return std::as_bytes(std::span(*static_cast<const std::vector<T>*>(list)));
}

template <typename T>
void visit_map(const void* map, void* context, Type::Visit each) {
  for (const auto& [key, value] : *static_cast<const std::map<std::string, T>*>(map)) {
    each(context, key, &value);
  }
}

inline void visit_set(const void* set, void* context, Type::Visit each) {
  for (const std::string& value : *static_cast<const std::set<std::string>*>(set)) {
    each(context, value, &value);
  }
}

template <typename Variant>
Held get_held(const void* variant) {
  const auto& value = *static_cast<const Variant*>(variant);
  return {value.index(), std::visit([](const auto& held) -> const void* { return &held; }, value)};
}

// The operations for reading.

template <typename T>
void* set_value(void* optional, bool has_value) {
  auto& value = *static_cast<std::optional<T>*>(optional);
  value.reset();
  return has_value ? &value.emplace() : nullptr;
}

template <typename T>
void* resize(void* list, std::size_t count) {
  auto& values = *static_cast<std::vector<T>*>(list);
  values.resize(count);
  return count > 0 ? &values.back() : nullptr;
}

template <typename T>
void* add_to_map(void* map, const std::string* key) {
  auto& values = *static_cast<std::map<std::string, T>*>(map);
  if (key == nullptr) {
    values.clear();
    return nullptr;
  }
  return &values[*key];
}

inline void* add_to_set(void* set, const std::string* key) {
  auto& values = *static_cast<std::set<std::string>*>(set);
  if (key == nullptr) {
    values.clear();
  } else {
    values.insert(*key);
  }
  return nullptr;
}

template <typename Variant, std::size_t index>
void* emplace_case(void* variant) {
  return &static_cast<Variant*>(variant)->template emplace<index>();
}

// One overload for each kind of type.
template <typename T>
struct Tag {};

template <Direction direction, typename T>
constexpr Type describe(Tag<std::optional<T>>) {
  Type type{.kind = Type::Kind::optional, .table = {.inner = &TypeOf<T, direction>::type}};
  if constexpr (direction == Direction::write) {
    type.operation.get = &get_value<T>;
  } else {
    type.operation.set = &set_value<T>;
  }
  return type;
}

template <Direction direction, typename T>
constexpr Type describe(Tag<std::vector<T>>) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements");
  Type type{.kind = Type::Kind::list, .size = sizeof(T), .table = {.inner = &TypeOf<T, direction>::type}};
  if constexpr (direction == Direction::write) {
    type.operation.bytes = &get_bytes<T>;
  } else {
    type.operation.resize = &resize<T>;
  }
  return type;
}

template <Direction direction, typename T>
constexpr Type describe(Tag<std::map<std::string, T>>) {
  Type type{.kind = Type::Kind::map, .table = {.inner = &TypeOf<T, direction>::type}};
  if constexpr (direction == Direction::write) {
    type.operation.visit = &visit_map<T>;
  } else {
    type.operation.add = &add_to_map<T>;
  }
  return type;
}

template <Direction direction>
constexpr Type describe(Tag<std::set<std::string>>) {
  Type type{.kind = Type::Kind::set, .table = {.inner = &TypeOf<std::string, direction>::type}};
  if constexpr (direction == Direction::write) {
    type.operation.visit = &visit_set;
  } else {
    type.operation.add = &add_to_set;
  }
  return type;
}

template <typename Variant, Direction direction, typename Indices>
struct Cases;
template <typename... T, Direction direction, std::size_t... I>
struct Cases<std::variant<T...>, direction, std::index_sequence<I...>> {
  static constexpr std::array<VariantCase, sizeof...(T)> table{
      VariantCase{T::kind, &TypeOf<T, direction>::type,
                  direction == Direction::read ? &emplace_case<std::variant<T...>, I> : nullptr}...};
};

template <Direction direction, typename... T>
constexpr Type describe(Tag<std::variant<T...>>) {
  const auto& table = Cases<std::variant<T...>, direction, std::index_sequence_for<T...>>::table;
  Type type{.kind = Type::Kind::variant, .count = sizeof...(T), .table = {.cases = table.data()}};
  if constexpr (direction == Direction::write) {
    type.operation.held = &get_held<std::variant<T...>>;
  }
  return type;
}

template <Direction direction, typename Rep, typename Period>
constexpr Type describe(Tag<std::chrono::duration<Rep, Period>>) {
  static_assert(sizeof(std::chrono::duration<Rep, Period>) == sizeof(Rep));
  return describe<direction>(Tag<Rep>{});
}

template <Direction direction, typename T>
constexpr Type describe(Tag<T>) {
  if constexpr (Declared<T>) {
    return describe_object<T, direction>();
  } else if constexpr (std::is_enum_v<T>) {
    const auto& names = enum_names<T>;
    static_assert(names.size() > 0, "enum_names has no specialization");
    return {
        .kind = Type::Kind::name, .count = names.size(), .size = sizeof(T), .table = {.names = names.data()}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {.kind = Type::Kind::boolean};
  } else if constexpr (std::is_integral_v<T>) {
    return {.kind = std::is_signed_v<T> ? Type::Kind::integer : Type::Kind::unsigned_integer,
            .size = sizeof(T)};
  } else if constexpr (std::is_same_v<T, double>) {
    return {.kind = Type::Kind::real};
  } else {
    static_assert(std::is_same_v<T, std::string>, "this type cannot be a field");
    return {.kind = Type::Kind::string};
  }
}

}  // namespace detail

template <typename T, Direction direction>
constexpr Type TypeOf<T, direction>::type = detail::describe<direction>(detail::Tag<T>{});

}  // namespace remote::wire
