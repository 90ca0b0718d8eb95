#include "wire/cbor.hpp"

#include <bit>
#include <set>
#include <string>

#include "wire/read.hpp"
#include "wire/write.hpp"

namespace remote::wire {
namespace {

// CBOR's major types: the upper three bits of a value's first byte.
enum class Major : std::uint8_t { unsigned_integer, negative, bytes, text, array, map, tag, simple };

constexpr std::uint8_t byte_of(Major major, unsigned low) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(major) << 5U | low);
}

constexpr std::uint8_t false_byte = byte_of(Major::simple, 20);
constexpr std::uint8_t true_byte = byte_of(Major::simple, 21);
constexpr std::uint8_t null_byte = byte_of(Major::simple, 22);
constexpr std::uint8_t float_byte = byte_of(Major::simple, 26);
constexpr std::uint8_t double_byte = byte_of(Major::simple, 27);

class CborWriter : public Writer {
 public:
  void write_null() override { bytes_.push_back(null_byte); }
  void write_bool(bool value) override { bytes_.push_back(value ? true_byte : false_byte); }
  void write_integer(std::int64_t value) override {
    if (value < 0) {
      put(Major::negative, ~static_cast<std::uint64_t>(value));
    } else {
      put(Major::unsigned_integer, static_cast<std::uint64_t>(value));
    }
  }
  void write_unsigned(std::uint64_t value) override { put(Major::unsigned_integer, value); }
  void write_real(double value) override {
    bytes_.push_back(double_byte);
    put_number(std::bit_cast<std::uint64_t>(value), 8);
  }
  void write_string(std::string_view value) override {
    put(Major::text, value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void begin_list(std::size_t count) override { put(Major::array, count); }
  void begin_object(std::size_t count) override { put(Major::map, count); }
  void write_key(std::string_view key) override { write_string(key); }
  void end() override {}

  Bytes& bytes() { return bytes_; }

 private:
  void put(Major major, std::uint64_t number) {
    if (number < 24) {
      bytes_.push_back(byte_of(major, static_cast<unsigned>(number)));
      return;
    }
    const unsigned log = number > 0xffffffff ? 3 : number > 0xffff ? 2 : number > 0xff ? 1 : 0;
    bytes_.push_back(byte_of(major, 24 + log));
    put_number(number, 1U << log);
  }
  void put_number(std::uint64_t number, unsigned size) {
    while (size-- > 0) {
      bytes_.push_back(static_cast<std::uint8_t>(number >> (8 * size)));
    }
  }

  Bytes bytes_;
};

class CborReader {
 public:
  explicit CborReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  void read_all(Value& value) {
    read(value, 0);
    require(rest_.empty());
  }

 private:
  static void require(bool is_valid, const char* reason = "is not valid CBOR") {
    if (!is_valid) {
      throw Malformed("", reason);
    }
  }
  std::span<const std::uint8_t> take(std::uint64_t size) {
    require(size <= rest_.size());
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::uint64_t take_number(std::size_t size) {
    std::uint64_t number = 0;
    for (const std::uint8_t byte : take(size)) {
      number = number << 8U | byte;
    }
    return number;
  }
  std::string_view take_text(std::uint64_t size) {
    const auto text = take(size);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  // The number in a value's first byte, or after it.
  std::uint64_t take_argument(unsigned low) {
    require(low < 28);
    return low < 24 ? low : take_number(std::size_t{1} << (low - 24));
  }

  void read(Value& value, std::size_t depth) {
    require(++values_ <= max_values, "has too many values");
    const std::uint8_t first = take(1)[0];
    const auto major = static_cast<Major>(first >> 5U);
    if (major == Major::simple) {
      return read_simple(value, first);
    }
    const std::uint64_t number = take_argument(first & 0x1fU);
    switch (major) {
      case Major::unsigned_integer:
        value.kind = Value::Kind::unsigned_integer;
        value.number = number;
        break;
      case Major::negative:
        require(number >> 63U == 0);
        value.kind = Value::Kind::integer;
        value.number = ~number;
        break;
      case Major::text:
        value.kind = Value::Kind::string;
        value.string = take_text(number);
        break;
      case Major::array:
        require(depth < max_depth, "is nested too deeply");
        value.kind = Value::Kind::list;
        for (std::uint64_t i = 0; i < number; ++i) {
          read(value.values.emplace_back(), depth + 1);
        }
        break;
      case Major::map:
        require(depth < max_depth, "is nested too deeply");
        value.kind = Value::Kind::object;
        for (std::uint64_t i = 0; i < number; ++i) {
          read_field(value.values.emplace_back(), depth + 1);
        }
        check_names(value);
        break;
      case Major::bytes:
        require(false, "has a byte string");
        break;
      case Major::tag:
      case Major::simple:
        require(false);
        break;
    }
  }

  void read_field(Value& field, std::size_t depth) {
    const std::uint8_t first = take(1)[0];
    require(static_cast<Major>(first >> 5U) == Major::text);
    field.name = take_text(take_argument(first & 0x1fU));
    read(field, depth);
  }

  static void check_names(const Value& object) {
    std::set<std::string_view> names;
    for (const Value& each : object.values) {
      require(names.insert(each.name).second, "has a field twice");
    }
  }

  void read_simple(Value& value, std::uint8_t first) {
    if (first == null_byte) {
      return;
    }
    if (first == false_byte || first == true_byte) {
      value.kind = Value::Kind::boolean;
      value.boolean = first == true_byte;
      return;
    }
    require(first == float_byte || first == double_byte);
    const double real = first == double_byte
                            ? std::bit_cast<double>(take_number(8))
                            : std::bit_cast<float>(static_cast<std::uint32_t>(take_number(4)));
    value.kind = Value::Kind::real;
    value.number = std::bit_cast<std::uint64_t>(real);
  }

  std::span<const std::uint8_t> rest_;
  std::size_t values_ = 0;
};

}  // namespace

Value parse_cbor(std::span<const std::uint8_t> bytes) {
  Value value;
  CborReader(bytes).read_all(value);
  return value;
}

Bytes encode(const Type& type, const void* value) {
  CborWriter writer;
  write(type, value, writer);
  return std::move(writer.bytes());
}

void decode(std::span<const std::uint8_t> bytes, const Type& type, void* value) {
  read(parse_cbor(bytes), type, value, {}, "");
}

}  // namespace remote::wire
