#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/types.hpp"

namespace remote::wire {

// Writes a value in one of the wire's formats, such as CBOR.
class Writer {
 public:
  Writer() = default;
  virtual ~Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  virtual void write_null() = 0;
  virtual void write_bool(bool value) = 0;
  virtual void write_integer(std::int64_t value) = 0;
  virtual void write_unsigned(std::uint64_t value) = 0;
  virtual void write_real(double value) = 0;
  virtual void write_string(std::string_view value) = 0;
  // The next `count` values are the elements of the list.
  virtual void begin_list(std::size_t count) = 0;
  // The next `count` keys and values are the fields of the object.
  virtual void begin_object(std::size_t count) = 0;
  virtual void write_key(std::string_view key) = 0;
  virtual void end() = 0;
};

void write(const Type& type, const void* value, Writer& writer);

}  // namespace remote::wire
