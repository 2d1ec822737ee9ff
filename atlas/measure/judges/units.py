"""The units, currencies, multiples and months that figures are read by.

Units of one dimension convert exactly. A month is no number of days and a working day no day, so
they have dimensions of their own.
"""

from __future__ import annotations

UNITS: dict[str, tuple[str, str, str]] = {
    "seconds": ("time", "1", "s|sec|secs|seconds?"),
    "minutes": ("time", "60", "min|mins|minutes?"),
    "hours": ("time", "3600", "h|hr|hrs|hours?"),
    "days": ("time", "86400", "days?|calendar days?"),
    "weeks": ("time", "604800", "weeks?"),
    "fortnights": ("time", "1209600", "fortnights?"),
    "working days": ("working days", "1", "(?:working|business|work) days?"),
    "months": ("months", "1", "months?"),
    "years": ("months", "12", "years?|yrs?"),
    "decades": ("months", "120", "decades?"),
    "mm": ("length", "1", "mm|millimet(?:er|re)s?"),
    "cm": ("length", "10", "cm|centimet(?:er|re)s?"),
    "m": ("length", "1000", "m|met(?:er|re)s?"),
    "km": ("length", "1000000", "km|kilomet(?:er|re)s?"),
    "inches": ("length", "25.4", "inch|inches"),
    "miles": ("length", "1609344", "miles?"),
    "feet": ("length", "304.8", "feet|foot|ft"),
    "g": ("mass", "1", "g|grams?"),
    "kg": ("mass", "1000", "kg|kilos?|kilograms?"),
    "tonnes": ("mass", "1000000", "tonnes?"),
    "pounds": ("pounds", "1", "lbs?|pounds?"),
    "mV": ("voltage", "0.001", "mV|millivolts?"),
    "V": ("voltage", "1", "V|volts?"),
    "kV": ("voltage", "1000", "kV|kilovolts?"),
    "mA": ("current", "0.001", "mA|milliamps?"),
    "A": ("current", "1", "A|amps?|amperes?"),
    "mAh": ("charge", "0.001", "mAh"),
    "Ah": ("charge", "1", "Ah|amp(?:ere)?[- ]hours?"),
    "Wh": ("energy", "1", "Wh|watt[- ]hours?"),
    "kWh": ("energy", "1000", "kWh|kilowatt[- ]hours?"),
    "W": ("power", "1", "W|watts?"),
    "kW": ("power", "1000", "kW|kilowatts?"),
    "Ohm": ("resistance", "1", "Ohms?|Ω"),
    "kOhm": ("resistance", "1000", "kOhms?|kΩ|kiloohms?"),
    "MOhm": ("resistance", "1000000", "MOhms?|MΩ|megohms?|megaohms?"),
    "Nm": ("torque", "1", "Nm|N·m|newton[- ]met(?:er|re)s?"),
    "lbf ft": ("lbf ft", "1", "lbf[ -]?ft|ft[ -]?lbs?|foot[ -]pounds?|pound[ -]feet"),
    "bar": ("bar", "1", "bars?"),
    "psi": ("psi", "1", "psi"),
    "km/h": ("km/h", "1", r"km/h|kmh|kph|kilomet(?:er|re)s? per hour"),
    "mph": ("mph", "1", "mph|miles per hour"),
    "%": ("%", "1", "%|percent|per cent"),
    "°C": ("°C", "1", r"°\s?C|℃|degrees? (?:C|Celsius|centigrade)"),
    "°F": ("°F", "1", r"°\s?F|℉|degrees? (?:F|Fahrenheit)"),
    "euro": ("euro", "1", "EUR|euros?|€"),
    "dollar": ("dollar", "1", "USD|dollars?"),
    "pound sterling": ("sterling", "1", "GBP"),
    "cl": ("volume", "10", "cl|centilit(?:er|re)s?"),
    "l": ("volume", "1000", "l|lit(?:er|re)s?"),
    "ml": ("volume", "1", "ml|millilit(?:er|re)s?"),
    "lux": ("lux", "1", "lux"),
    "Hz": ("frequency", "1", "Hz"),
    "kHz": ("frequency", "1000", "kHz"),
    "MHz": ("frequency", "1000000", "MHz"),
    "GHz": ("frequency", "1000000000", "GHz"),
    "MB": ("MB", "1", "MB|megabytes?"),
    "GB": ("GB", "1", "GB|gigabytes?"),
    "rpm": ("rpm", "1", "rpm"),
}
"""Unit -> dimension, factor to its base unit, and how it is written."""
SIGNS = {
    "€": "euro",
    "$": "dollar",
    "£": "sterling",
    "eur": "euro",
    "usd": "dollar",
    "gbp": "sterling",
}
MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip
"""Read as numbers where a claim has one: `season 9` is the ninth."""
