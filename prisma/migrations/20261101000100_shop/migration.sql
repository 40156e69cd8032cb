CREATE TABLE "Stock" (
    "id" SERIAL NOT NULL,
    "product" TEXT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "fence" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "Stock_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "Order" (
    "id" SERIAL NOT NULL,
    "stockId" INTEGER NOT NULL,
    "buyer" TEXT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "Order_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "Ledger" (
    "id" SERIAL NOT NULL,
    "key" TEXT NOT NULL,
    "token" BIGINT NOT NULL,
    "before" INTEGER NOT NULL,
    "after" INTEGER NOT NULL,
    "worker" TEXT NOT NULL,
    "once" TEXT,

    CONSTRAINT "Ledger_pkey" PRIMARY KEY ("id")
);

CREATE UNIQUE INDEX "Stock_product_key" ON "Stock"("product");

-- Checked at COMMIT and not before: it lets a test see COMMIT itself refused.
ALTER TABLE "Ledger" ADD CONSTRAINT "Ledger_once_key" UNIQUE ("once") DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE "Order" ADD CONSTRAINT "Order_stockId_fkey" FOREIGN KEY ("stockId") REFERENCES "Stock"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
