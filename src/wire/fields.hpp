#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wire/malformed.hpp"
#include "wire/text.hpp"

// Structs are converted to CBOR (cbor.hpp) and JSON (json.hpp) and back by one declaration of their fields. A
// struct declares
//
//   static constexpr auto fields() {
//     return field_list(field("rank", &Started::rank), field("name", &Started::name, limits(64)));
//   }
//
// or, if it cannot include this header, has a specialization of Fields with the same function.
//
// Fields may be bool, integers, double, std::string, durations (as their number of ticks), enums with a
// declared list of names, other such structs, std::set<std::string>, and std::optional, std::vector,
// std::map<std::string, …> and std::variant of these. A variant of structs is an object {"kind": NAME, …},
// with the alternative's `static constexpr std::string_view kind`.
//
// Decoding is strict: a missing or unknown field, a wrong type, an unknown name, and a value out of its
// limits are all Malformed, with the path of the field.

namespace remote::wire {

constexpr std::size_t max_map_key = 1024;

// The characters that a string may contain.
enum class Text {
  any,
  line,  // UTF-8 without control characters: see is_line()
  name,  // ASCII letters, digits and "._-", at least one
  word,  // ASCII letters, digits and the marks of the limits, or nothing
  id,    // 32 lower-case hexadecimal digits: the id of a job or a launch
};

// The limits of a field: the range of a number, the bytes of a string, or the entries of a list or map. The
// strings in a list and the keys of a map have the same limits.
struct Limits {
  long long least = std::numeric_limits<long long>::min();
  long long most = std::numeric_limits<long long>::max();
  std::size_t size = 65536;
  Text text = Text::any;
  std::string_view marks{};

  constexpr Limits range(long long from, long long to) const {
    Limits limits = *this;
    limits.least = from;
    limits.most = to;
    return limits;
  }
};

// At most `size` bytes of a string, or entries of a list.
constexpr Limits at_most(std::size_t size) {
  Limits limits;
  limits.size = size;
  return limits;
}

constexpr Limits in_range(long long from, long long to) {
  return Limits{}.range(from, to);
}

// One line of text for the user.
constexpr Limits a_line(std::size_t size = 200) {
  return {.size = size, .text = Text::line};
}

constexpr Limits a_name(std::size_t size = 200) {
  return {.size = size, .text = Text::name};
}

constexpr Limits a_word(std::string_view marks, std::size_t size = 200) {
  return {.size = size, .text = Text::word, .marks = marks};
}

// The id of a job or a launch.
constexpr Limits an_id() {
  return {.size = 32, .text = Text::id};
}

// A list of up to `most` ids.
constexpr Limits ids(std::size_t most) {
  return {.size = most, .text = Text::id};
}

template <typename Struct, typename Value>
struct Field {
  using value_type = Value;

  std::string_view name;
  Value Struct::*member;
  Limits limits;
};

template <typename Struct, typename Value>
constexpr Field<Struct, Value> field(std::string_view name, Value Struct::*member, Limits limits = {}) {
  return {name, member, limits};
}

// Used instead of std::tuple, which takes long to compile.
namespace detail {

template <std::size_t index, typename Each>
struct FieldEntry {
  Each field;
};

template <typename Indices, typename... Each>
struct FieldList;
template <std::size_t... index, typename... Each>
struct FieldList<std::index_sequence<index...>, Each...> : FieldEntry<index, Each>... {
  static constexpr std::size_t count = sizeof...(Each);
};

template <std::size_t index, typename Each>
constexpr Each get_field(const FieldEntry<index, Each>& entry) {
  return entry.field;
}

}  // namespace detail

template <typename... Each>
constexpr auto field_list(Each... fields) {
  return detail::FieldList<std::index_sequence_for<Each...>, Each...>{{fields}...};
}

// The fields of a struct that is declared elsewhere: a specialization has `static constexpr auto fields()`.
template <typename T>
struct Fields {};

template <typename T>
concept DeclaredInside = requires {
  T::fields();
};

template <typename T>
concept Declared = DeclaredInside<T> || requires {
  Fields<T>::fields();
};

template <typename T>
constexpr auto fields_of() {
  if constexpr (DeclaredInside<T>) {
    return T::fields();
  } else {
    return Fields<T>::fields();
  }
}

// A struct that is an alternative of a variant.
template <typename T>
concept Alternative = Declared<T> && std::is_same_v<std::remove_cvref_t<decltype(T::kind)>, std::string_view>;

// The names of an enum's values, in the order of their numbers from 0. Specialize it for each enum on the
// wire.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <typename Enum>
constexpr std::string_view name_of_value(Enum value) {
  return enum_names<Enum>.at(static_cast<std::size_t>(value));
}

}  // namespace remote::wire
